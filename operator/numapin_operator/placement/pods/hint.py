"""Which NUMA nodes a request should come from: the hints of CPUs and memory, merged."""

from typing import Final

from numapin_api.quantity import format_bytes, plural
from numapin_operator.placement.cpumanager.pod_cpus import PodCpus
from numapin_operator.placement.errors import TopologyAffinityError
from numapin_operator.placement.masks import NO_CPUS, NO_NUMA_NODES, NumaMask, members
from numapin_operator.placement.memorymanager.binder import MemoryBinder
from numapin_operator.placement.policy import NodePolicy
from numapin_operator.placement.requests import Amounts
from numapin_operator.placement.topologymanager.hints import (
    NOWHERE,
    CpuHints,
    Impossible,
    MemoryHints,
    cpu_hints,
)
from numapin_operator.placement.topologymanager.merge import MergedHint

_OURS: Final = frozenset({"Preferred", "SingleNUMA"})
"""Memory policies that the kubelet does not have."""


class HintFinder:
    """Asks one pod's CPUs and memory for hints and merges them."""

    def __init__(self, policy: NodePolicy, cpus: PodCpus, memory: MemoryBinder) -> None:
        self._policy, self._cpus, self._memory = policy, cpus, memory

    def find(
        self, cpus: int, memory: Amounts, *, no_cpus: bool = False, no_memory: bool = False
    ) -> MergedHint:
        """The NUMA nodes for so many CPUs and so much memory.

        Args:
            cpus: exclusive CPUs asked for.
            memory: memory and huge pages asked for.
            no_cpus: no NUMA nodes will do for the CPUs.
            no_memory: no NUMA nodes will do for the memory.

        Raises:
            TopologyAffinityError: the topology policy refuses every choice.
        """
        merger = self._policy.hint_merger
        if merger.policy == "None":
            return MergedHint(self._together(cpus, memory), preferred=False)
        cpu = NOWHERE if no_cpus else self._cpu_hints(cpus)
        merged = merger.merge(cpu, self._memory_hints(memory, nowhere=no_memory))
        if merged is None and self._policy.spec.memory.policy == "Preferred":
            merged = merger.merge(cpu, None)
        if merged is None:
            raise TopologyAffinityError(
                f"no NUMA nodes have {_request(cpus, memory)} as topology policy "
                f"{merger.policy} demands"
            )
        return merged

    def _together(self, count: int, asked: Amounts) -> NumaMask | None:
        """The NUMA node that has both the CPUs and the memory, for numapin's own memory policies.

        Of several the one with the fewest free CPUs, as when CPUs are packed, then the lowest.
        None if no NUMA node has both, or another policy binds memory.
        """
        if not count or not asked or self._policy.spec.memory.policy not in _OURS:
            return None
        found = self._memory.hints(asked)
        free = self._cpus.free | self._cpus.reusable
        there = {
            numa_node: free & self._policy.cpu_groups.numa_nodes.get(numa_node, NO_CPUS)
            for numa_node in members(found.singles if found else NO_NUMA_NODES)
        }
        can_take = self._policy.cpu_taker.can_take
        fitting = [numa_node for numa_node, cpus in there.items() if can_take(cpus, count)]
        if not fitting:
            return None
        best = min(fitting, key=lambda numa_node: (there[numa_node].bit_count(), numa_node))
        return NumaMask(1 << best)

    def _cpu_hints(self, count: int) -> CpuHints | Impossible | None:
        if not count:
            return None
        return cpu_hints(
            self._policy.cpu_groups,
            self._cpus.free,
            self._cpus.reusable,
            count,
            by_socket=self._policy.cpu_taker.align_by_socket,
        )

    def _memory_hints(self, asked: Amounts, *, nowhere: bool) -> MemoryHints | Impossible | None:
        if not asked:
            return None
        return NOWHERE if nowhere else self._memory.hints(asked)


def _request(cpus: int, memory: Amounts) -> str:
    parts = [plural(cpus, "CPU")] if cpus else []
    return ", ".join([*parts, *(f"{format_bytes(size)} of {name}" for name, size in memory)])
