"""Sets of CPUs and of NUMA nodes as bit masks, which the planner computes with.

Both are plain integers at run time, since they are made millions of times. To the type checker they
are kinds of their own: one cannot stand for the other, nor a number for either.
"""

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final, Self, overload

if TYPE_CHECKING:

    class _Mask(int):
        """An integer whose operators keep its kind; with any other integer they do not."""

        @overload
        def __and__(self, other: Self) -> Self: ...
        @overload
        def __and__(self, other: int) -> int: ...
        def __and__(self, other: int) -> int: ...
        @overload
        def __or__(self, other: Self) -> Self: ...
        @overload
        def __or__(self, other: int) -> int: ...
        def __or__(self, other: int) -> int: ...
        @overload
        def __xor__(self, other: Self) -> Self: ...
        @overload
        def __xor__(self, other: int) -> int: ...
        def __xor__(self, other: int) -> int: ...
        def __invert__(self) -> Self: ...

    class CpuMask(_Mask):
        """A set of logical CPUs: bit 3 is CPU 3."""

    class NumaMask(_Mask):
        """A set of NUMA nodes: bit 3 is NUMA node 3."""

else:
    CpuMask = NumaMask = int

NO_CPUS: Final = CpuMask(0)
NO_NUMA_NODES: Final = NumaMask(0)


def numa_mask(numa_nodes: Iterable[int]) -> NumaMask:
    """The mask of these NUMA nodes."""
    mask = 0
    for numa_node in numa_nodes:
        mask |= 1 << numa_node
    return NumaMask(mask)


def members(mask: CpuMask | NumaMask) -> Iterator[int]:
    """The ids in a mask, lowest first."""
    rest = int(mask)
    while rest:
        low = rest & -rest
        yield low.bit_length() - 1
        rest ^= low


def union(masks: Iterable[CpuMask]) -> CpuMask:
    """The CPUs that are in any of the masks."""
    return reduce(or_, masks, NO_CPUS)


def lowest(mask: CpuMask, count: int) -> CpuMask:
    """The `count` lowest members of a mask; all of it if it has fewer."""
    surplus = mask.bit_count() - count
    if surplus <= 0:
        return mask
    if surplus < count:
        return _without_highest(mask, surplus)
    chosen, rest = 0, int(mask)
    for _ in range(count):
        low = rest & -rest
        chosen |= low
        rest ^= low
    return CpuMask(chosen)


def _without_highest(mask: CpuMask, count: int) -> CpuMask:
    rest = int(mask)
    for _ in range(count):
        rest ^= 1 << rest.bit_length() - 1
    return CpuMask(rest)
