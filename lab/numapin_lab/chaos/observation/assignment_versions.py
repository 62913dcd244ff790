"""Pure: what a NodeAssignment claims: who owns which CPUs, in the words of its status."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from numapin_api.cpuset import CpuSet

Owner = tuple[str, str]
"""A pod's UID and a container's name."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of the NodeAssignment as far as it matters here.

    Attributes:
        at: when it was seen, monotonic seconds; 0 until then.
        generation: of the spec.
        listed: what the spec gives to whom exclusively, as bit masks.
        claims: the part of it that the status reports as exclusive, with these very CPUs.
        shared: the spec's shared pool as a bit mask.
        drifts: the status's count.
    """

    at: float = 0.0
    generation: int = 0
    listed: tuple[tuple[Owner, int], ...] = ()
    claims: tuple[tuple[Owner, int], ...] = ()
    shared: int = 0
    drifts: int = 0

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Self:
        """Read an object as the API server has it."""
        spec, status = body.get("spec") or {}, body.get("status") or {}
        listed = dict(_exclusive(spec))
        pools = spec.get("pools") or {}
        return cls(
            generation=int(body["metadata"]["generation"]),
            listed=tuple(listed.items()),
            claims=tuple(one for one in _exclusive(status) if listed.get(one[0]) == one[1]),
            shared=_mask(pools.get("shared", "")),
            drifts=int(status.get("driftCount", 0)),
        )

    def owners(self) -> frozenset[Owner]:
        """Whom the spec lists."""
        return frozenset(owner for owner, _ in self.listed)


def _exclusive(part: Mapping[str, Any]) -> list[tuple[Owner, int]]:
    return [
        ((one["podUID"], one["container"]), _mask(one["cpus"]))
        for one in part.get("containers") or ()
        if one.get("exclusive")
    ]


def _mask(text: str) -> int:
    return CpuSet.parse(text).mask
