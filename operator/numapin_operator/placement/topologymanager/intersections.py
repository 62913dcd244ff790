"""Whether a set of NUMA nodes is what CPU and memory hints have in common."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from numapin_operator.placement.masks import NO_NUMA_NODES, NumaMask
from numapin_operator.placement.topologymanager.hints import CpuHints, MemoryHints

_MOST_STEPS: Final = 4096

Load = tuple[int, ...]


@dataclass(slots=True)
class _Side:
    """One provider's set: what it can still give up, and the nodes that it must contain."""

    slack: list[int]
    fixed: NumaMask


def is_intersection(numa_nodes: NumaMask, cpu: CpuHints | None, memory: MemoryHints) -> bool:
    """True if sets of loose nodes and a CPU set exist whose intersection is `numa_nodes`.

    Every other loose node must be missing from at least one of the sets (memory has one set for
    each resource asked for), and every set must still hold what is asked: a small packing problem.
    """
    free = [weights for weights, _ in memory.needs]
    slack = [
        sum(weights.get(numa_node, 0) for numa_node in memory.loose) - need
        for weights, need in memory.needs
    ]
    if min(slack, default=0) < 0:
        return False
    others = [numa_node for numa_node in memory.loose if not numa_nodes >> numa_node & 1]
    sides = [_Side(list(slack), NO_NUMA_NODES) for _ in range(memory.copies)]
    loads = {
        numa_node: tuple(weights.get(numa_node, 0) for weights in free) for numa_node in others
    }
    if cpu is None:
        return _leaves_out(others, sides, [loads] * len(sides))
    # A node without CPUs is in no CPU set, so any other set may contain it.
    others = [numa_node for numa_node in others if numa_node in cpu.cpu_groups.numa_nodes]
    cpu_side = _Side([sum(cpu.free.values()) - cpu.wanted], cpu.required)
    cpu_loads: dict[int, Load] = {numa_node: (cpu.free.get(numa_node, 0),) for numa_node in others}
    return _leaves_out(others, [cpu_side, *sides], [cpu_loads, *[loads] * len(sides)])


def _leaves_out(
    numa_nodes: Sequence[int], sides: Sequence[_Side], loads: Sequence[dict[int, Load]]
) -> bool:
    """True if every node can be left out of some side, within what that side can give up."""
    steps = 0
    order = sorted(
        numa_nodes, key=lambda numa_node: (-max(sum(load[numa_node]) for load in loads), numa_node)
    )

    def place(at: int) -> bool:
        nonlocal steps
        if at == len(order):
            return True
        steps += 1
        if steps > _MOST_STEPS:
            return False
        numa_node = order[at]
        for side, load in zip(sides, loads, strict=True):
            if side.fixed >> numa_node & 1:
                continue
            if all(have >= part for have, part in zip(side.slack, load[numa_node], strict=True)):
                _spend(side, load[numa_node], -1)
                if place(at + 1):
                    return True
                _spend(side, load[numa_node], 1)
        return False

    return place(0)


def _spend(side: _Side, load: Load, sign: int) -> None:
    side.slack[:] = [have + sign * part for have, part in zip(side.slack, load, strict=True)]
