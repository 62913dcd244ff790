"""Versions of a NodeAssignment: its exclusive containers in spec and status."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from numapin_api.cpuset import CpuSet

ContainerKey = tuple[str, str]
"""A pod's UID and a container's name."""


@dataclass(frozen=True, slots=True)
class AssignmentVersion:
    """What a chaos run needs of one version of the NodeAssignment.

    Attributes:
        at: when it was received, monotonic seconds; 0 until then.
        generation: of the spec.
        spec_exclusive: the exclusive containers of the spec, with their CPUs as bit masks.
        reported_exclusive: those that the status reports as exclusive with the same CPUs.
        shared: the spec's shared pool as a bit mask.
        drift_count: the status's count of external changes.
    """

    at: float = 0.0
    generation: int = 0
    spec_exclusive: tuple[tuple[ContainerKey, int], ...] = ()
    reported_exclusive: tuple[tuple[ContainerKey, int], ...] = ()
    shared: int = 0
    drift_count: int = 0

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Self:
        """Parse a NodeAssignment as v1alpha1 has it, with what its enforcer reports."""
        spec, status = body.get("spec") or {}, body.get("status") or {}
        in_spec = dict(_exclusive(spec))
        pools = spec.get("pools") or {}
        return cls(
            generation=int(body["metadata"]["generation"]),
            spec_exclusive=tuple(in_spec.items()),
            reported_exclusive=tuple(
                one for one in _exclusive(status) if in_spec.get(one[0]) == one[1]
            ),
            shared=_mask(pools.get("shared", "")),
            drift_count=int(status.get("driftCount", 0)),
        )

    def spec_containers(self) -> frozenset[ContainerKey]:
        """The exclusive containers of the spec."""
        return frozenset(key for key, _ in self.spec_exclusive)


def _exclusive(part: Mapping[str, Any]) -> list[tuple[ContainerKey, int]]:
    return [
        ((one["podUID"], one["container"]), _mask(one["cpus"]))
        for one in part.get("containers") or ()
        if one.get("exclusive")
    ]


def _mask(text: str) -> int:
    return CpuSet.parse(text).mask
