"""Sets of NUMA nodes, one for each provider, of which nodes are left out until few are common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from numapin_operator.placement.masks import NO_NUMA_NODES, NumaMask
from numapin_operator.placement.topologymanager.device_hints import DeviceHints
from numapin_operator.placement.topologymanager.hints import CpuHints, MemoryHints

_MOST_STEPS: Final = 4096

Load = tuple[int, ...]


class Side(Protocol):
    """One provider's set, of which nodes are left out one by one."""

    def weight(self, numa_node: int) -> int:
        """How much a node gives; those that give most are left out first."""

    def leave_out(self, numa_node: int) -> bool:
        """Leave a node out; returns False, and does nothing, if the set must contain it."""

    def put_back(self, numa_node: int) -> None:
        """Put back a node that was left out."""


@dataclass(slots=True)
class _WeighedSide:
    """A set of CPUs or memory: what it can still give up, and the nodes that it must contain."""

    slack: list[int]
    loads: Mapping[int, Load]
    fixed: NumaMask = NO_NUMA_NODES

    def weight(self, numa_node: int) -> int:
        return sum(self.loads[numa_node])

    def leave_out(self, numa_node: int) -> bool:
        load = self.loads[numa_node]
        if self.fixed >> numa_node & 1:
            return False
        if any(have < part for have, part in zip(self.slack, load, strict=True)):
            return False
        self.slack = [have - part for have, part in zip(self.slack, load, strict=True)]
        return True

    def put_back(self, numa_node: int) -> None:
        load = self.loads[numa_node]
        self.slack = [have + part for have, part in zip(self.slack, load, strict=True)]


@dataclass(slots=True)
class _DeviceSide:
    """A set for devices: some are near several of its nodes, and need one of them."""

    hints: DeviceHints
    kept: NumaMask

    def weight(self, numa_node: int) -> int:
        return sum(count for near, count in self.hints.free.items() if near >> numa_node & 1)

    def leave_out(self, numa_node: int) -> bool:
        left = self.kept & ~NumaMask(1 << numa_node)
        if not self.hints.suffices(left):
            return False
        self.kept = left
        return True

    def put_back(self, numa_node: int) -> None:
        self.kept |= NumaMask(1 << numa_node)


def side_of_cpus(cpu: CpuHints) -> Side:
    """The set for CPUs, with all NUMA nodes that have any."""
    loads = {one: (cpu.free.get(one, 0),) for one in cpu.numa_nodes}
    return _WeighedSide([sum(cpu.free.values()) - cpu.wanted], loads, cpu.required)


def side_of_devices(devices: DeviceHints) -> Side:
    """The set for the devices of a resource, with all NUMA nodes that have any."""
    return _DeviceSide(devices, devices.numa_nodes)


def sides_of_memory(memory: MemoryHints) -> list[Side]:
    """One side for each resource asked for; a set of loose nodes holds all of them."""
    needs = memory.needs
    loads = {one: tuple(at.get(one, 0) for at, _ in needs) for one in memory.loose}
    slack = [sum(at.get(one, 0) for one in memory.loose) - need for at, need in needs]
    return [_WeighedSide(slack, loads) for _ in range(memory.copies)]


def leaves_out(numa_nodes: Sequence[int], sides: Sequence[Side]) -> bool:
    """True if every node can be left out of some side, within what that side can give up."""
    steps = 0
    order = sorted(numa_nodes, key=lambda one: (-max(side.weight(one) for side in sides), one))

    def place(at: int) -> bool:
        nonlocal steps
        if at == len(order):
            return True
        steps += 1
        if steps > _MOST_STEPS:
            return False
        for side in sides:
            if side.leave_out(order[at]):
                if place(at + 1):
                    return True
                side.put_back(order[at])
        return False

    return place(0)
