"""Which constraint a request fails that the topology policy refuses.

Does no I/O.
"""

from collections.abc import Callable
from dataclasses import dataclass

from numapin_api.cpuset import MemSet
from numapin_api.quantity import exact_bytes, plural
from numapin_operator.placement.masks import members
from numapin_operator.placement.policy.node_policy import NodePolicy
from numapin_operator.placement.requests import Amounts
from numapin_operator.placement.topologymanager.hints import CpuHints, Impossible, MemoryHints
from numapin_operator.placement.topologymanager.subset_search import SubsetSearch


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """CPUs and memory for which the topology policy allows no NUMA nodes.

    Attributes:
        policy: the node's policy.
        count: the CPUs asked for.
        cpu: where they could come from.
        asked: the memory and huge pages asked for.
        hints_of: where any amounts could be bound.
    """

    policy: NodePolicy
    count: int
    cpu: CpuHints | Impossible | None
    asked: Amounts
    hints_of: Callable[[Amounts], MemoryHints | None]

    def __str__(self) -> str:
        """What the CPUs lack; else what the memory lacks; else why they cannot be together."""
        merger = self.policy.hint_merger
        scope = " for the pod as a whole (topology.scope Pod)"
        of_pod = scope if self.policy.spec.topology.scope == "Pod" else ""
        if merger.merge(self.cpu, None) is None:
            return self._lacking_cpus() + of_pod
        failing = tuple(one for one in self.asked if not self._allows((one,)))
        if failing or not self._allows(self.asked):
            return self._lacking(None, failing or self.asked) + of_pod
        cpu, memory = self.cpu, self.hints_of(self.asked)
        if isinstance(cpu, CpuHints) and memory and not cpu.sockets:
            if cpu.fewest != memory.fewest:
                return self._of_other_widths(cpu.fewest, memory.fewest) + of_pod
            return self._lacking(cpu, self.asked) + of_pod
        return self._lacking(None, self.asked) + of_pod

    def _allows(self, asked: Amounts) -> bool:
        """Whether the policy allows memory alone."""
        return self.policy.hint_merger.merge(None, self.hints_of(asked)) is not None

    def _lacking_cpus(self) -> str:
        cpus, demands = plural(self.count, "CPU"), self._demands
        if not isinstance(self.cpu, CpuHints):
            return f"no NUMA nodes have {cpus} free, all taken together"
        if self._wants_one and self.cpu.fewest > 1:
            return f"{cpus} need {self.cpu.fewest} NUMA nodes, and {demands} allows one"
        beside = " with those of its init containers" if self.cpu.required else ""
        where = _have(self.cpu.fewest)
        if self.cpu.sockets:
            where = f"NUMA nodes of {plural(self.cpu.sockets, 'socket')} have"
        return f"no {where} {cpus} free{beside}, as {demands} demands"

    def _lacking(self, cpu: CpuHints | None, asked: Amounts) -> str:
        """That no NUMA nodes have the memory, or have it beside the CPUs."""
        memory, listed, demands = self.hints_of(asked), self._listed(cpu, asked), self._demands
        if memory is None:
            return f"no NUMA nodes have {listed}, as {demands} demands"
        if self._wants_one and memory.fewest > 1:
            return f"{listed} needs {memory.fewest} NUMA nodes, and {demands} allows one"
        said = f"no {_have(memory.fewest)} {listed} free, as {demands} demands"
        needs = memory.needs + (cpu.needs if cpu else ())
        numa_nodes = tuple(one.id for one in self.policy.topology.numa_nodes)
        there = SubsetSearch(numa_nodes, needs).smallest()
        if not there or there.bit_count() > memory.fewest:
            return said
        has = "nodes {} have" if there.bit_count() > 1 else "node {} has"
        return (
            f"{said}: NUMA {has.format(MemSet(members(there)))} it, but memory of other containers "
            "is bound there to another set of NUMA nodes"
        )

    def _of_other_widths(self, of_cpus: int, of_memory: int) -> str:
        return (
            f"{plural(self.count, 'CPU')} need {plural(of_cpus, 'NUMA node')}, "
            f"{self._listed(None, self.asked)} {plural(of_memory, 'NUMA node')}, and "
            f"{self._demands} wants as many for both; memory.policy Preferred or "
            "topology.policy BestEffort does not"
        )

    @property
    def _demands(self) -> str:
        return f"topology policy {self.policy.hint_merger.policy}"

    @property
    def _wants_one(self) -> bool:
        return self.policy.hint_merger.policy == "SingleNUMANode"

    def _listed(self, cpu: CpuHints | None, asked: Amounts) -> str:
        cpus = [plural(self.count, "CPU")] if cpu else []
        return " and ".join([*cpus, *(f"{exact_bytes(size)} of {name}" for name, size in asked)])


def _have(numa_nodes: int) -> str:
    return f"{numa_nodes} NUMA nodes have" if numa_nodes > 1 else "NUMA node has"
