"""The checkpoints of the kubelet's managers: does the kubelet pin containers itself?"""

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from numapin_api.schema.plain import KubeletContainer
from numapin_daemon import atomic_file
from numapin_enforcer.node.kubelet_state import (
    STATIC_CPUS,
    STATIC_MEMORY,
    CpuState,
    KubeletStateError,
    MemoryState,
    checkpoint,
    parse_cpu_state,
    parse_memory_state,
    pinned,
)

LOG: Final = logging.getLogger(__name__)

MOST_BYTES: Final = 16 * 1024 * 1024
"""Far more than a checkpoint of all containers of a node takes."""


MOST_CONTAINERS: Final = 2048
"""As many as `status.kubeletContainers` may list."""


class _Manager(NamedTuple):
    """One manager of the kubelet: its file, its static policy, and how to turn that off."""

    name: str
    file: str
    static: str
    setting: str


_CPU = _Manager("CPU manager", "cpu_manager_state", STATIC_CPUS, "cpuManagerPolicy to none")
_MEMORY = _Manager(
    "memory manager", "memory_manager_state", STATIC_MEMORY, "memoryManagerPolicy to None"
)
STATE_FILES: Final = (_CPU.file, _MEMORY.file)


def static_policy_conflict(kubelet_state_dir: Path) -> str:
    """Why numapin must not act beside this kubelet; empty if it may.

    A checkpoint names the policy of its manager. One that does not exist or cannot be parsed is no
    conflict.
    Source: kubelet pkg/kubelet/cm/cpumanager/state, `CPUManagerCheckpoint`, and
    pkg/kubelet/cm/memorymanager/state, `MemoryManagerCheckpoint`.
    """
    for manager in (_CPU, _MEMORY):
        path = kubelet_state_dir / manager.file
        if _policy(path) == manager.static:
            return (
                f"the kubelet's {manager.name} pins containers itself (policy {manager.static} in "
                f"{path}); set {manager.setting}, remove that file and restart the kubelet, or "
                "exclude this node from every CpuPolicy"
            )
    return ""


def _policy(path: Path) -> object:
    """The policy that a checkpoint names; None if that cannot be read."""
    try:
        return checkpoint(_read(path)).get("policyName")
    except (OSError, KubeletStateError):
        return None


def _read(path: Path) -> bytes:
    return atomic_file.read(path, most_bytes=MOST_BYTES)


def pinned_containers(kubelet_state_dir: Path) -> tuple[KubeletContainer, ...]:
    """The containers that the kubelet has given exclusive CPUs or bound to NUMA nodes.

    A checkpoint that cannot be parsed names no container; see `unreadable_checkpoint`.
    """
    cpu, memory = CpuState(""), MemoryState()
    with suppress(OSError, KubeletStateError):
        memory = parse_memory_state(_read(kubelet_state_dir / _MEMORY.file))
    with suppress(OSError, KubeletStateError):
        cpu = parse_cpu_state(_read(kubelet_state_dir / _CPU.file))
    return pinned(cpu, memory)[:MOST_CONTAINERS]


def unreadable_checkpoint(kubelet_state_dir: Path) -> str:
    """Which checkpoint has entries that cannot be parsed, and why; empty if all can."""
    parsers: tuple[tuple[_Manager, Callable[[bytes], object]], ...] = (
        (_CPU, parse_cpu_state),
        (_MEMORY, parse_memory_state),
    )
    for manager, parse in parsers:
        path = kubelet_state_dir / manager.file
        try:
            parse(_read(path))
        except OSError:
            continue  # a kubelet without that manager
        except KubeletStateError as problem:
            return f"{path}: {problem}"
    return ""


class KubeletPins:
    """What the kubelet's managers pin, by the checkpoints as they were read last.

    Attributes:
        conflict: why the cgroups must be left alone; empty if nothing is pinned.
        pins_cpus: whether the CPU manager pins.
        containers: what the managers have pinned.
    """

    def __init__(self, state_dir: Path) -> None:
        """Know nothing yet. Args: `state_dir` is the kubelet's folder."""
        self._state_dir = state_dir
        self.conflict = self._logged = ""
        self.pins_cpus = False
        self.containers: tuple[KubeletContainer, ...] = ()

    def observe(self, *, full_resync: bool) -> None:
        """Read the checkpoints; without `full_resync` only to see whether a conflict has ended."""
        if not (full_resync or self.conflict):
            return
        self.conflict = static_policy_conflict(self._state_dir)
        if self.conflict and (problem := unreadable_checkpoint(self._state_dir)):
            self.conflict += f"; what it has given cannot be taken over: {problem}"
        self.pins_cpus = _policy(self._state_dir / _CPU.file) == STATIC_CPUS
        self.containers = pinned_containers(self._state_dir)

    def log_conflict(self) -> None:
        """Log a conflict once: without a policy there is no NodeAssignment that could say it."""
        if self.conflict not in ("", self._logged):
            LOG.warning("this node is left alone", extra={"why": self.conflict})
        self._logged = self.conflict

    def outdated(self) -> str:
        """See `checkpoint_replaced`."""
        return checkpoint_replaced(self._state_dir)


def checkpoint_replaced(kubelet_state_dir: Path) -> str:
    """Why only a restart shows the kubelet's newest checkpoints; empty if none is needed.

    The kubelet replaces a checkpoint instead of writing into it. A pod that mounts only that file
    still sees the old one, which has no folder entry any more, until its container is restarted.
    """
    for path in (kubelet_state_dir / name for name in STATE_FILES):
        try:
            links = path.stat().st_nlink
        except OSError:
            continue
        if not links:
            return f"the kubelet has replaced {path}; only a restart shows the new one"
    return ""
