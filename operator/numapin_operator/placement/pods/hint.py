"""Which NUMA nodes a request should come from: the hints of CPUs, memory and devices, merged."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from numapin_api.quantity import plural
from numapin_operator.placement.cpumanager.pod_cpus import PodCpus
from numapin_operator.placement.devicemanager.given import GivenDevices
from numapin_operator.placement.devicemanager.pod_devices import PodDevices
from numapin_operator.placement.errors import SmtAlignmentError, TopologyAffinityError
from numapin_operator.placement.masks import NO_CPUS, CpuMask, NumaMask
from numapin_operator.placement.memorymanager.binder import MemoryBinder
from numapin_operator.placement.pods.beside import cpus_beside_memory
from numapin_operator.placement.pods.constraint import Asked, RefusedRequest
from numapin_operator.placement.policy.node_policy import NodePolicy
from numapin_operator.placement.requests import Amounts
from numapin_operator.placement.topologymanager.hints import (
    NOWHERE,
    CpuHints,
    Impossible,
    MemoryHints,
    cpu_hints_of,
)
from numapin_operator.placement.topologymanager.merge import Choose, MergedHint

Prefers = Callable[[int, CpuMask, Amounts], Choose]
"""How to choose for so many CPUs of those that are free, and so much memory."""

_OURS: Final = frozenset({"Preferred", "SingleNUMA"})
"""Memory policies that the kubelet does not have."""


class HintFinder:
    """Asks one pod's CPUs, memory and devices for hints and merges them.

    Attributes:
        frees_followers: containers that start after an init container need not be where it runs.
        within: where CPUs are looked for; None for everywhere.
        container: the container that is placed; None if it is the pod as a whole.
        apart: how many hints were not the preferred ones.
    """

    def __init__(
        self,
        policy: NodePolicy,
        cpus: PodCpus,
        memory: MemoryBinder,
        devices: PodDevices | GivenDevices | None,
        prefers: Prefers | None = None,
    ) -> None:
        """Args: `prefers` chooses among NUMA nodes; None for the lowest, as with the kubelet."""
        self._policy, self._cpus, self._memory, self._prefers = policy, cpus, memory, prefers
        self._devices = devices
        self.frees_followers = False
        self.within: NumaMask | None = None
        self.container: str | None = None
        self.apart = 0

    @property
    def heeds_devices(self) -> bool:
        """Whether devices have a say."""
        return self._devices is not None

    def find(
        self,
        cpus: int,
        memory: Amounts,
        devices: Amounts,
        *,
        no_cpus: str = "",
        no_memory: str = "",
    ) -> MergedHint:
        """The NUMA nodes for so many CPUs, so much memory and so many devices.

        Args:
            cpus: exclusive CPUs asked for.
            memory: memory and huge pages asked for.
            devices: devices asked for.
            no_cpus: why no NUMA nodes will do for the CPUs.
            no_memory: why no NUMA nodes will do for the memory.

        Raises:
            TopologyAffinityError: the topology policy refuses every choice.
        """
        if self._policy.hint_merger.policy == "None":
            alone = self._alone(cpus, memory)
            return MergedHint(alone or self._beside_memory(cpus, memory), preferred=False)
        found = self._merged(cpus, memory, devices, no_cpus=no_cpus, no_memory=no_memory)
        self.apart += not found.preferred
        return found

    def _merged(
        self, cpus: int, memory: Amounts, devices: Amounts, *, no_cpus: str, no_memory: str
    ) -> MergedHint:
        merger = self._policy.hint_merger
        near = self._devices.hints(devices, self.container) if self._devices is not None else ()
        cpu = NOWHERE if no_cpus else self._cpu_hints(cpus)
        choose = self._choose(cpus, memory)
        bound = NOWHERE if no_memory else self._memory_hints(memory)
        merged = merger.merge(cpu, bound, choose, near)
        if merged is not None and merged.preferred and _is_single(merged):
            return merged
        if merged is None and self._policy.spec.memory.policy == "Preferred":
            merged = merger.merge(cpu, None, choose, near)
        if merged is None and self._lacks_whole_cores(cpus, memory):
            policy = merger.policy
            raise SmtAlignmentError(
                f"no NUMA nodes have {plural(cpus, 'CPU')} in whole cores, as topology policy "
                f"{policy} demands; cores with threads in several NUMA nodes do not count"
            )
        if merged is None:
            asked = Asked(cpus, memory, devices)
            given = isinstance(self._devices, GivenDevices)
            why = RefusedRequest(self._policy, asked, cpu, near, self._memory_hints, given)
            raise TopologyAffinityError(no_cpus or no_memory or str(why))
        decided = no_cpus or no_memory or near
        return merged if decided else self._moved_beside(merged, cpus, memory)

    def _choose(self, count: int, asked: Amounts) -> Choose | None:
        if self._prefers is None:
            return None
        return self._prefers(count, self._inside(self._cpus.free | self._cpus.reusable), asked)

    def _alone(self, count: int, asked: Amounts) -> NumaMask | None:
        """Without a topology policy: the preferred NUMA node that has all; None if none has."""
        choose = self._choose(count, asked)
        if choose is None or not (count or asked):
            return None
        single = replace(self._policy.hint_merger, policy="SingleNUMANode")
        found = single.merge(self._cpu_hints(count), self._memory_hints(asked), choose)
        return found.numa_nodes if found is not None else None

    def _moved_beside(self, merged: MergedHint, count: int, asked: Amounts) -> MergedHint:
        """The hint with NUMA nodes beside the memory, if the topology policy allows them."""
        if self._policy.cpu_taker.align_by_socket or merged.numa_nodes is None:
            return merged
        beside = self._beside_memory(count, asked)
        if beside is None:
            return merged
        wider = beside.bit_count() > merged.numa_nodes.bit_count()
        if wider and self._policy.hint_merger.policy != "BestEffort":
            return merged
        return merged._replace(numa_nodes=beside)

    def _beside_memory(self, count: int, asked: Amounts) -> NumaMask | None:
        """The NUMA nodes for the CPUs beside which the memory can be; None if that is not ours."""
        ours = self._policy.spec.memory.policy in _OURS
        if not ours or not count or not asked:
            return None
        found = self._memory.hints(asked)
        free = self._inside(self._cpus.free | self._cpus.reusable)
        return cpus_beside_memory(self._policy, free, count, found) if found else None

    def _cpu_hints(self, count: int) -> CpuHints | Impossible | None:
        if not count:
            return None
        free, reusable = self._cpus.free, self._cpus.reusable
        if self.frees_followers:
            free, reusable = self._inside(free | reusable), NO_CPUS
        return cpu_hints_of(self._policy.cpu_taker, free, reusable, count)

    def _lacks_whole_cores(self, count: int, memory: Amounts) -> bool:
        """Whether it is refused, now or always, because cores cross NUMA nodes."""
        taker, groups = self._policy.cpu_taker, self._policy.cpu_groups
        if not count or not taker.keeps_cores_whole or not groups.cores_cross:
            return False
        merge, divided = self._policy.hint_merger.merge, replace(taker, whole_cores_only=False)
        free = self._inside(self._cpus.free | self._cpus.reusable)
        if merge(cpu_hints_of(divided, free, NO_CPUS, count), self._memory_hints(memory)):
            return True
        whole, parts = (
            merge(cpu_hints_of(one, groups.cpus, NO_CPUS, count), None) for one in (taker, divided)
        )
        return whole is None and parts is not None

    def _inside(self, cpus: CpuMask) -> CpuMask:
        if self.within is None:
            return cpus
        return cpus & self._policy.cpu_taker.cpus_near(self.within)

    def _memory_hints(self, asked: Amounts) -> MemoryHints | None:
        return self._memory.hints(asked) if asked else None


def _is_single(merged: MergedHint) -> bool:
    return merged.numa_nodes is not None and merged.numa_nodes.bit_count() == 1
