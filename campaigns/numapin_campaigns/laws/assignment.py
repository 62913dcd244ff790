"""No exclusive CPU is shared: one NodeAssignment. Does no I/O."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from numapin_api.cpuset import CpuSet


def overlaps(spec: Mapping[str, Any]) -> list[str]:
    """Which exclusive sets of a spec share CPUs with each other or with the shared pool.

    Args:
        spec: the spec as JSON, whether the model accepts it or not.
    """
    owned = [
        (f"{one['pod']}/{one['container']}", CpuSet.parse(one["cpus"]))
        for one in spec.get("containers") or ()
        if one.get("exclusive")
    ]
    pool = CpuSet.parse((spec.get("pools") or {}).get("shared", ""))
    return [
        f"{first} and {second} both have {one & other}"
        for (first, one), (second, other) in combinations([*owned, ("shared", pool)], 2)
        if one & other
    ]
