"""Memory in even parts on the NUMA nodes of CPUs that are distributed among them."""

from collections.abc import Mapping
from typing import Final

from numapin_api.topology import page_size_bytes
from numapin_operator.placement.allocations import Block
from numapin_operator.placement.masks import NumaMask
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.requests import HUGEPAGES_PREFIX, Amounts

_UNIT: Final = 1 << 20
"""Bytes of memory that are not divided; of huge pages it is one of them."""


def beside_cpus(
    tables: MemoryTables, asked: Amounts, cpus: Mapping[int, int]
) -> list[Block] | None:
    """Blocks on the NUMA nodes of the CPUs, in proportion to them.

    A NUMA node that has less gives what it has, and the others give the rest. None if these NUMA
    nodes do not have it together.

    Args:
        tables: what is free.
        asked: bytes of each resource.
        cpus: how many CPUs are on each NUMA node.
    """
    blocks: list[Block] = []
    for resource, size in filter(lambda amount: amount[1], asked):
        free = tables.free.get(resource, {})
        room = {numa_node: free.get(numa_node, 0) for numa_node in cpus}
        if sum(room.values()) < size:
            return None
        parts = _divided(size, _unit(resource), cpus, room)
        blocks += [Block(NumaMask(1 << one), resource, part) for one, part in parts.items() if part]
    return blocks


def _unit(resource: str) -> int:
    if resource.startswith(HUGEPAGES_PREFIX):
        return page_size_bytes(resource.removeprefix(HUGEPAGES_PREFIX))
    return _UNIT


def _divided(
    size: int, unit: int, cpus: Mapping[int, int], room: Mapping[int, int]
) -> dict[int, int]:
    """The part of each NUMA node, in whole units but for the last bytes."""
    all_cpus = sum(cpus.values())
    parts = {
        one: min(room[one], size * count // all_cpus // unit * unit) for one, count in cpus.items()
    }
    left = size - sum(parts.values())
    for most in (unit, left):
        for one in cpus:
            more = min(left, most, room[one] - parts[one])
            parts[one] += more
            left -= more
    return parts
