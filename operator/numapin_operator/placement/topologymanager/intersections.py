"""What the hints of all providers have in common, of one size: preferred sets, and the others."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from numapin_operator.placement.masks import NO_NUMA_NODES, NumaMask, members, numa_mask
from numapin_operator.placement.topologymanager.device_hints import DeviceHints
from numapin_operator.placement.topologymanager.hints import CpuHints, MemoryHints
from numapin_operator.placement.topologymanager.leaving_out import (
    Side,
    leaves_out,
    side_of_cpus,
    side_of_devices,
    sides_of_memory,
)
from numapin_operator.placement.topologymanager.subset_search import (
    Distances,
    SubsetSearch,
    Weights,
)


class Providers(NamedTuple):
    """The providers that have sets to offer; `possible` is False if another has none."""

    cpu: CpuHints | None
    memory: MemoryHints | None
    possible: bool
    devices: tuple[DeviceHints, ...] = ()

    def preferred_single(self) -> NumaMask:
        """The lowest single NUMA node that all providers prefer; 0 if there is none."""
        cpu, memory = self.cpu, self.memory
        if (cpu is not None and cpu.fewest > 1) or (memory is not None and memory.fewest > 1):
            return NO_NUMA_NODES
        if cpu is None or self.devices:
            found = self._singles()
            return NumaMask(found & -found)
        for numa_node, free in cpu.free.items():
            mask = NumaMask(1 << numa_node)
            if (
                free >= cpu.wanted
                and not cpu.required & ~mask
                and (memory is None or memory.singles & mask)
            ):
                return mask
        return NO_NUMA_NODES

    def preferred_singles(self) -> NumaMask:
        """Every single NUMA node that all providers prefer."""
        return self._singles() if self.preferred_single() else NO_NUMA_NODES

    def _singles(self) -> NumaMask:
        """Every single NUMA node that is sufficient for all, and preferred for the devices."""
        cpu, memory = self.cpu, self.memory
        if cpu is None and memory is None and not self.devices:
            return NO_NUMA_NODES
        found = _common(one.singles() for one in self.devices)
        if memory is not None:
            found &= memory.singles
        if cpu is None:
            return found
        return numa_mask(
            numa_node
            for numa_node, free in cpu.free.items()
            if free >= cpu.wanted
            and not cpu.required & ~(1 << numa_node)
            and found >> numa_node & 1
        )

    def preferred_sizes(self) -> range:
        """The sizes that preferred sets can have, smallest first."""
        fixed = [one.fewest for one in (self.memory, *self.devices) if one is not None]
        if fixed:
            agreed = min(fixed) == max(fixed)
            return range(fixed[0], fixed[0] + 1) if agreed else range(0)
        if self.cpu is None:
            return range(0)
        last = self.cpu.fewest if self.cpu.sockets is None else len(self.cpu.numa_nodes)
        return range(self.cpu.fewest, last + 1)

    def preferred_sets(self, size: int, distances: Distances | None) -> SubsetSearch:
        """The search for sets that all providers prefer, memory's groups excepted."""
        memory, cpu = self.memory, self.cpu
        numa_nodes: Iterable[int]
        needs: tuple[tuple[Weights, int], ...] = ()
        if memory is None:
            numa_nodes = members(self.reach)
        elif size == 1:
            numa_nodes = members(memory.singles)
        else:
            numa_nodes, needs = memory.loose, memory.needs
        if cpu is None and not self.devices:
            return SubsetSearch(tuple(numa_nodes), needs, distances=distances)
        reach = self.reach
        for one in (cpu, *self.devices):
            needs += one.needs if one is not None else ()
        return SubsetSearch(
            numa_nodes=tuple([one for one in numa_nodes if reach >> one & 1]),
            needs=needs,
            required=cpu.required if cpu is not None else NO_NUMA_NODES,
            accept=self._is_preferred if self.devices or cpu is None else cpu.prefers,
            distances=distances,
        )

    @property
    def reach(self) -> NumaMask:
        """The NUMA nodes that CPUs and devices can come from; all bits without either."""
        reach = _common(one.numa_nodes for one in self.devices)
        return reach & numa_mask(self.cpu.numa_nodes) if self.cpu is not None else reach

    def _is_preferred(self, numa_nodes: NumaMask) -> bool:
        """True if a set that has the CPUs is a preferred one for them and the devices."""
        wanted = self.cpu is None or self.cpu.prefers(numa_nodes)
        return wanted and all(one.prefers(numa_nodes) for one in self.devices)

    def preferred_groups(self, size: int) -> list[NumaMask]:
        """Memory's groups of this size that are also preferred for CPUs and devices."""
        groups = self.memory.groups if self.memory else ()
        return [
            group
            for group in groups
            if group.bit_count() == size
            and (self.cpu is None or _serves(self.cpu, group))
            and all(one.prefers(group) for one in self.devices)
        ]

    def neediest(self) -> int:
        """How many NUMA nodes the neediest provider needs."""
        providers = (self.cpu, self.memory, *self.devices)
        return max((one.smallest() for one in providers if one is not None), default=0)

    def intersections(self, size: int, distances: Distances | None) -> Iterator[NumaMask]:
        """The fittest intersection of each kind: single nodes, parts of groups, loose nodes."""
        cpu, memory = self.cpu, self.memory
        if memory is None:
            if self.devices:
                yield self._left_of(self.reach, None, distances).best(size)
            elif cpu is not None:
                yield SubsetSearch(
                    cpu.numa_nodes, cpu.needs, cpu.required, distances=distances
                ).best(size)
            return
        reach = self.reach
        if size == 1:
            yield from (NumaMask(1 << one) for one in members(memory.singles & reach))
        for group in memory.groups:
            if self.devices:
                yield self._left_of(group & reach, None, distances).best(size)
            else:
                yield _within_group(cpu, group, size, distances)
        if memory.copies == 1 and cpu is None and not self.devices:
            yield memory.loose_sets(distances=distances).best(size) if size > 1 else NO_NUMA_NODES
        elif memory.loose_sets().smallest():
            loose = numa_mask(memory.loose) & reach
            yield self._left_of(loose, memory, distances).best(size)

    def _left_of(
        self, numa_nodes: NumaMask, memory: MemoryHints | None, distances: Distances | None
    ) -> SubsetSearch:
        """The search for what sets for CPUs, devices and loose memory have in common.

        Every other one of the NUMA nodes must be missing from one of the sets at least (memory has
        one for each resource asked for), and every set must still hold what is asked: a small
        packing problem. A node that is not in reach is in none of the sets of CPUs, or of devices.
        """
        listed = tuple(members(numa_nodes))

        def is_common(chosen: NumaMask) -> bool:
            others = [one for one in listed if not chosen >> one & 1]
            sides = self._sides() + (sides_of_memory(memory) if memory is not None else [])
            return leaves_out(others, sides)

        return SubsetSearch(listed, accept=is_common, distances=distances)

    def _sides(self) -> list[Side]:
        of_cpus = [side_of_cpus(self.cpu)] if self.cpu is not None else []
        return of_cpus + [side_of_devices(one) for one in self.devices]


def _serves(cpu: CpuHints, numa_nodes: NumaMask) -> bool:
    """True if a set is preferred for the CPUs."""
    inside = not numa_nodes & ~numa_mask(cpu.numa_nodes) and not cpu.required & ~numa_nodes
    enough = sum(cpu.free.get(numa_node, 0) for numa_node in members(numa_nodes)) >= cpu.wanted
    return inside and enough and cpu.prefers(numa_nodes)


def _within_group(
    cpu: CpuHints | None, group: NumaMask, size: int, distances: Distances | None
) -> NumaMask:
    """A part of a group that a CPU set can leave: one that has enough with all other nodes."""
    if cpu is None:
        return group if group.bit_count() == size else NO_NUMA_NODES
    outside = sum(free for numa_node, free in cpu.free.items() if not group >> numa_node & 1)
    return SubsetSearch(
        numa_nodes=tuple(
            numa_node for numa_node in members(group) if numa_node in cpu.cpu_groups.numa_nodes
        ),
        needs=((cpu.free, max(0, cpu.wanted - outside)),),
        required=cpu.required & group,
        distances=distances,
    ).best(size)


def _common(each: Iterable[NumaMask]) -> NumaMask:
    """The NUMA nodes that are in all of these sets; all bits if there are none of them."""
    found = NumaMask(-1)
    for one in each:
        found &= one
    return found
