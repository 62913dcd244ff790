"""What the kubelet's static managers have given to containers, as their checkpoints say.

Their checksums, over a dump of Go's memory, are not verified: the kubelet does not start with a
wrong one. Source: kubelet pkg/kubelet/cm/cpumanager/state and pkg/kubelet/cm/memorymanager/state,
`CPUManagerCheckpoint` and `MemoryManagerCheckpoint` of Kubernetes v1.36 and v1.37.

Does no I/O.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from numapin_api.cpuset import CpuSet, ListFormatError, MemSet
from numapin_api.meta.derived import ContainerKey
from numapin_api.schema.plain import KubeletContainer

STATIC_CPUS: Final = "static"
STATIC_MEMORY: Final = "Static"
"""The policies with which a manager pins; others, such as `none` and `BestEffort`, do not."""

_UID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_NAME_LENGTH: Final = 253


class KubeletStateError(ValueError):
    """A checkpoint is damaged, or of a version that is not known; the text says where."""


@dataclass(frozen=True, slots=True)
class CpuState:
    """The checkpoint of the CPU manager.

    Attributes:
        policy: `none` or `static`.
        shared: the CPUs of all other containers; empty under `none`.
        exclusive: the CPUs of each exclusive container; none under `none`.
        of_pods: the CPUs of pods that have them as a whole.
    """

    policy: str
    shared: CpuSet = CpuSet()
    exclusive: Mapping[ContainerKey, CpuSet] = field(default_factory=dict)
    of_pods: CpuSet = CpuSet()

    @property
    def known(self) -> CpuSet:
        """Every CPU that it names."""
        return self.shared | self.of_pods | CpuSet.union(self.exclusive.values())


@dataclass(frozen=True, slots=True)
class MemoryState:
    """The checkpoint of the memory manager: its policy, and each container's NUMA nodes.

    Only the policy `Static` binds memory.
    """

    policy: str = "None"
    mems: Mapping[ContainerKey, MemSet] = field(default_factory=dict)


def parse_cpu_state(text: str | bytes) -> CpuState:
    """Parse `cpu_manager_state`.

    Raises:
        KubeletStateError: it is damaged, or older than Kubernetes 1.18.
    """
    state = checkpoint(text)
    policy = _policy_name(state)
    exclusive = {key: _cpus(key, cpus) for key, cpus in _containers(state)}
    shared = _cpus(("", "defaultCpuSet"), state.get("defaultCpuSet", ""))
    if policy != STATIC_CPUS:
        return CpuState(policy)
    given = {key: cpus for key, cpus in exclusive.items() if cpus}
    return CpuState(policy, shared, given, _of_pods(state))


def parse_memory_state(text: str | bytes) -> MemoryState:
    """Parse `memory_manager_state`.

    Raises:
        KubeletStateError: it is damaged.
    """
    state = checkpoint(text)
    policy = _policy_name(state)
    mems = {key: _numa_nodes(key, blocks) for key, blocks in _containers(state)}
    bound = {key: numa_nodes for key, numa_nodes in mems.items() if numa_nodes}
    return MemoryState(policy, bound if policy == STATIC_MEMORY else {})


def pinned(cpu: CpuState, memory: MemoryState) -> tuple[KubeletContainer, ...]:
    """Each container with CPUs of its own or bound memory, by its pod's UID and its name.

    The memory manager binds every container of a Guaranteed pod, also one that shares CPUs.
    """
    keys = sorted({*cpu.exclusive, *memory.mems})
    return tuple(
        KubeletContainer(*key, cpu.exclusive.get(key, CpuSet()), memory.mems.get(key, MemSet()))
        for key in keys
    )


def checkpoint(text: str | bytes) -> Mapping[str, Any]:
    """The object in a checkpoint.

    From v1.37 on it is in the string `data`; the fields beside it, for an older kubelet, lack the
    pods that have CPUs as a whole, and a later version may leave them out.

    Raises:
        KubeletStateError: there is none, or it names something twice.
    """
    try:
        state = json.loads(text, object_pairs_hook=_object)
        if isinstance(state, dict) and state.get("data"):
            state = json.loads(state["data"], object_pairs_hook=_object)
    except KubeletStateError:
        raise
    except (TypeError, ValueError, RecursionError) as problem:
        raise KubeletStateError(f"it is not JSON ({problem})") from problem
    if not isinstance(state, dict):
        raise KubeletStateError("it is not a JSON object")
    return state


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; what stands in it twice has no single meaning."""
    found = dict[str, Any]()
    for name, value in pairs:
        if name in found:
            raise KubeletStateError(f"{name!r} stands twice in one object")
        found[name] = value
    return found


def _policy_name(state: Mapping[str, Any]) -> str:
    name = state.get("policyName")
    if not isinstance(name, str) or not name:
        raise KubeletStateError("policyName is missing: it is no state of a kubelet's manager")
    return name


def _containers(state: Mapping[str, Any]) -> Iterator[tuple[ContainerKey, Any]]:
    """The entry of each container."""
    pods = state.get("entries") or {}
    if not isinstance(pods, dict):
        raise KubeletStateError("entries is not an object")
    for uid, containers in pods.items():
        if isinstance(containers, str):
            raise KubeletStateError(
                "entries name containers by id, as before Kubernetes 1.18; update the kubelet first"
            )
        if not isinstance(containers, dict) or not _UID.fullmatch(uid):
            raise KubeletStateError(f"entries: {uid!r} is not a pod with its containers")
        for name, entry in containers.items():
            if not 0 < len(name) <= _NAME_LENGTH or not name.isprintable():
                raise KubeletStateError(f"entries: {uid}: {name!r} is not a container's name")
            yield (uid, name), entry


def _of_pods(state: Mapping[str, Any]) -> CpuSet:
    """The CPUs of pods as a whole, which their containers without CPUs of their own share."""
    pods = state.get("podEntries") or {}
    if not isinstance(pods, dict) or not all(isinstance(one, dict) for one in pods.values()):
        raise KubeletStateError("podEntries is not an object of pods")
    given = (_cpus((uid, "cpuSet"), one.get("cpuSet", "")) for uid, one in pods.items())
    return CpuSet.union(given)


def _cpus(key: ContainerKey, text: object) -> CpuSet:
    where = " ".join(filter(None, key))
    if not isinstance(text, str):
        raise KubeletStateError(f"{where}: {text!r} is not a list of CPUs")
    try:
        return CpuSet.parse(text)
    except ListFormatError as problem:
        raise KubeletStateError(f"{where}: {problem}") from problem


def _numa_nodes(key: ContainerKey, blocks: object) -> MemSet:
    """The NUMA nodes of all memory blocks of a container."""
    try:
        assert isinstance(blocks, list)
        return MemSet(one for block in blocks for one in block["numaAffinity"])
    except (AssertionError, KeyError, TypeError, ValueError) as problem:
        raise KubeletStateError(f"{' '.join(key)}: no list of memory blocks") from problem
