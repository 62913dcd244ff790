"""Bit masks: sets of CPUs or NUMA nodes as integers, as the packer and the merge use them."""

from collections.abc import Iterable, Iterator


def mask_of(ids: Iterable[int]) -> int:
    """The mask with a bit for each id."""
    mask = 0
    for one in ids:
        mask |= 1 << one
    return mask


def members(mask: int) -> Iterator[int]:
    """The ids in a mask, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def lowest(mask: int, count: int) -> int:
    """The `count` lowest members of a mask; all of it where it has fewer."""
    surplus = mask.bit_count() - count
    if surplus <= 0:
        return mask
    if surplus < count:
        return _without_highest(mask, surplus)
    kept, rest = 0, mask
    for _ in range(count):
        low = rest & -rest
        kept |= low
        rest ^= low
    return kept


def _without_highest(mask: int, count: int) -> int:
    for _ in range(count):
        mask ^= 1 << mask.bit_length() - 1
    return mask
