"""Which constraint a request fails that the topology policy refuses.

Does no I/O.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from numapin_api.cpuset import MemSet
from numapin_api.quantity import exact_bytes, plural
from numapin_operator.placement.masks import members
from numapin_operator.placement.policy.node_policy import NodePolicy
from numapin_operator.placement.requests import Amounts
from numapin_operator.placement.topologymanager.device_hints import DeviceHints
from numapin_operator.placement.topologymanager.hints import (
    NOWHERE,
    CpuHints,
    Impossible,
    MemoryHints,
)
from numapin_operator.placement.topologymanager.subset_search import SubsetSearch


class Asked(NamedTuple):
    """What is asked for: CPUs, memory and huge pages, and devices."""

    cpus: int
    memory: Amounts
    devices: Amounts


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """CPUs and memory for which the topology policy allows no NUMA nodes.

    Attributes:
        policy: the node's policy.
        request: what is asked for.
        cpu: where the CPUs could come from.
        devices: where the devices could come from.
        hints_of: where any amounts could be bound.
        given: whether the containers have their devices already.
    """

    policy: NodePolicy
    request: Asked
    cpu: CpuHints | Impossible | None
    devices: tuple[DeviceHints | Impossible, ...]
    hints_of: Callable[[Amounts], MemoryHints | None]
    given: bool = False

    def __str__(self) -> str:
        """What CPUs lack; else what memory lacks; else why they, or devices, are not together."""
        merger = self.policy.hint_merger
        scope = " for the pod as a whole (topology.scope Pod)"
        of_pod = scope if self.policy.spec.topology.scope == "Pod" else ""
        if merger.merge(self.cpu, None) is None:
            return self._lacking_cpus() + of_pod
        failing = tuple(one for one in self.asked if not self._allows((one,)))
        if failing or not self._allows(self.asked):
            return self._lacking(None, failing or self.asked) + of_pod
        cpu, memory = self.cpu, self.hints_of(self.asked)
        if merger.merge(cpu, memory) is not None:
            far = self._far_from_devices() if self.given else self._lacking_devices()
            return far + of_pod
        if isinstance(cpu, CpuHints) and memory and not cpu.sockets:
            if cpu.fewest != memory.fewest:
                return self._of_other_widths(cpu.fewest, memory.fewest) + of_pod
            return self._lacking(cpu, self.asked) + of_pod
        return self._lacking(None, self.asked) + of_pod

    @property
    def count(self) -> int:
        """The CPUs asked for."""
        return self.request.cpus

    @property
    def asked(self) -> Amounts:
        """The memory and huge pages asked for."""
        return self.request.memory

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

    def _lacking_devices(self) -> str:
        """That devices are not free on the NUMA nodes, or not beside CPUs and memory."""
        merge, demands = self.policy.hint_merger.merge, self._demands
        for one in self.devices:
            if merge(None, None, None, (one,)) is None:
                if one is NOWHERE:
                    return f"too few devices are free near NUMA nodes for {self._named_devices()}"
                asked = f"{one.wanted} of {one.resource}"
                if self._wants_one and one.fewest > 1:
                    return f"{asked} need {one.fewest} NUMA nodes, and {demands} allows one"
                return f"no {_have(one.fewest)} {asked} free near, as {demands} demands"
        bound = self.asked if self.hints_of(self.asked) else ()
        beside = self._listed(self.cpu, bound)
        with_them = f" and {beside}" if beside else ""
        return (
            f"no NUMA nodes have {self._named_devices()}{with_them} together, as {demands} demands"
        )

    def _far_from_devices(self) -> str:
        """That the devices which containers have are apart, or far from CPUs and memory."""
        merge, memory, demands = (
            self.policy.hint_merger.merge,
            self.hints_of(self.asked),
            self._demands,
        )
        found = [one for one in self.devices if isinstance(one, DeviceHints)]
        for one in found:
            if merge(None, None, None, (one,)) is None:
                allowed = "one" if self._wants_one else plural(one.fewest, "NUMA node")
                return f"{_where(one)}, and {demands} allows {allowed}"
        for one in found:
            if merge(self.cpu, memory, None, (one,)) is None:
                wanted = self._listed(self.cpu, self.asked if memory else ())
                free = self._free_near(one)
                return f"{_where(one)}, where {free}; {demands} demands {wanted} there"
        return f"{' and '.join(map(_where, found))}; {demands} demands CPUs and memory near all"

    def _free_near(self, devices: DeviceHints) -> str:
        """The CPUs that are free near devices; what is free elsewhere is said beside."""
        if not isinstance(self.cpu, CpuHints):
            return "too little memory is free"
        free = sum(count for one, count in self.cpu.free.items() if devices.near >> one & 1)
        return f"{plural(free, 'CPU')} {'is' if free == 1 else 'are'} free"

    def _named_devices(self) -> str:
        return ", ".join(f"{count} of {name}" for name, count in self.request.devices)

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

    def _listed(self, cpu: CpuHints | Impossible | None, asked: Amounts) -> str:
        cpus = [plural(self.count, "CPU")] if cpu else []
        return " and ".join([*cpus, *(f"{exact_bytes(size)} of {name}" for name, size in asked)])


def _where(devices: DeviceHints) -> str:
    """Where devices are that a container has."""
    has = "is" if devices.wanted == 1 else "are"
    nodes = "nodes" if devices.near.bit_count() > 1 else "node"
    there = MemSet.from_mask(devices.near)
    return f"{devices.wanted} {devices.resource} {has} on NUMA {nodes} {there}"


def _have(numa_nodes: int) -> str:
    return f"{numa_nodes} NUMA nodes have" if numa_nodes > 1 else "NUMA node has"
