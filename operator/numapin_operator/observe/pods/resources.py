"""Amounts of CPU, memory and huge pages in a pod, in the form that planning needs. Does no I/O."""

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from math import ceil
from sys import intern
from typing import Final

from numapin_api.quantity import QuantityError, parse_quantity
from numapin_api.topology import page_size_name
from numapin_operator.placement import CPU, HUGEPAGES_PREFIX, MEMORY, amounts

Resources = dict[str, Fraction]

CPU_AND_MEMORY: Final = (CPU, MEMORY)

_MAX_BYTES: Final = (1 << 63) - 1


def cpu_millis(requests: Resources) -> int:
    """The CPU request in thousandths, rounded up."""
    return ceil(requests.get(CPU, Fraction(0)) * 1000)


def memory_amounts(requests: Resources) -> tuple[tuple[str, int], ...]:
    """Memory and huge pages; no huge pages of a size are as good as that size not named."""
    return amounts(
        (intern(name), ceil(q))
        for name, q in requests.items()
        if name != CPU and (name == MEMORY or q > 0)
    )


@lru_cache(maxsize=256)
def canonical_resource(name: str) -> str | None:
    """The name of a resource as NodeAssignments have it; None for a size that no page can have.

    The API server accepts any quantity as a page size, such as `hugepages-2048Ki`; the kubelet
    reports and mounts the canonical one. Source: Kubernetes v1.36, `HugePageSizeFromResourceName`
    and `HugePageUnitSizeFromByteSize`.
    """
    if not name.startswith(HUGEPAGES_PREFIX):
        return name
    try:
        size = parse_quantity(name.removeprefix(HUGEPAGES_PREFIX))
    except QuantityError:
        return None
    if not 0 < size <= _MAX_BYTES or size % 1024:
        return None
    return f"{HUGEPAGES_PREFIX}{page_size_name(int(size))}"


def positive(resources: Resources) -> Resources:
    """CPU and memory, where an amount is given."""
    return {name: q for name, q in resources.items() if name in CPU_AND_MEMORY and q > 0}


def sum_positive(each: Iterable[Resources]) -> Resources:
    """The CPU and memory of all of them together."""
    total: Resources = {}
    for resources in each:
        for name, quantity in positive(resources).items():
            total[name] = total.get(name, Fraction(0)) + quantity
    return total
