"""The spec of a NodeAssignment as plain values, checked by the schema of the models.

The models take 9 MiB of memory on every node. Does no I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.assignment_spec import SPEC_SCHEMA
from numapin_api.schema.check import find_faults, find_unknown

MOST_FAULTS: Final = 20
"""How many wrong fields of a spec are named."""


class InvalidSpecError(ValueError):
    """A spec breaks the schema; `faults` name the first wrong fields, at least one."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Pools:
    """The CPUs of the node that are not exclusive to a container."""

    reserved: CpuSet
    shared: CpuSet


@dataclass(frozen=True, slots=True)
class Container:
    """One container; see `AssignedContainer`."""

    pod_uid: str
    namespace: str
    pod: str
    container: str
    cpus: CpuSet = CpuSet()
    mems: MemSet = MemSet()
    exclusive: bool = False
    outdated: bool | None = None
    claimed: bool | None = None

    def to_wire(self) -> dict[str, Any]:
        """The container as values for JSON."""
        wire = {
            "podUID": self.pod_uid,
            "namespace": self.namespace,
            "pod": self.pod,
            "container": self.container,
            "cpus": str(self.cpus),
            "mems": str(self.mems),
            "exclusive": self.exclusive,
        }
        marks = {"outdated": self.outdated, "claimed": self.claimed}
        return wire | {name: mark for name, mark in marks.items() if mark is not None}


@dataclass(frozen=True)
class Spec:
    """What the enforcer uses of a `NodeAssignmentSpec`; the other fields are checked and dropped.

    The fields and their defaults are those of the model; `refused` has values for JSON.
    """

    mode: str = "Static"
    pools: Pools | None = None
    cpu_quota: str = "Unlimited"
    isolation: str = "Cpuset"
    containers: tuple[Container, ...] = ()
    refused: tuple[Mapping[str, Any], ...] = ()
    refused_omitted: int | None = None
    release_at: str | None = None

    @cached_property
    def exclusive_cpus(self) -> CpuSet:
        """The CPUs of all exclusive containers."""
        return CpuSet.union(one.cpus for one in self.containers if one.exclusive)

    def to_wire(self) -> dict[str, Any]:
        """The spec as values for JSON. `decode_spec` restores an equal spec from them."""
        pools = self.pools
        wire: dict[str, Any] = {
            "mode": self.mode,
            "cpuQuota": self.cpu_quota,
            "isolation": self.isolation,
            "containers": [one.to_wire() for one in self.containers],
            "refused": list(self.refused),
        }
        if self.refused_omitted is not None:
            wire["refusedOmitted"] = self.refused_omitted
        if self.release_at is not None:
            wire["releaseAt"] = self.release_at
        if pools is not None:
            wire["pools"] = {"reserved": str(pools.reserved), "shared": str(pools.shared)}
        return wire


def decode_spec(wire: object) -> Spec:
    """Decode a spec as the API server has it, which may be any JSON value.

    Raises:
        InvalidSpecError: it breaks the schema.
    """
    found = find_faults(wire, SPEC_SCHEMA, "spec")
    if faults := tuple(islice(found, MOST_FAULTS)):
        more = () if next(found, None) is None else ("spec: there are more faults",)
        raise InvalidSpecError(faults + more)
    assert isinstance(wire, dict)
    pools, plain = wire.get("pools"), Spec()
    return Spec(
        wire.get("mode", plain.mode),
        _pools(pools) if pools is not None else None,
        wire.get("cpuQuota", plain.cpu_quota),
        wire.get("isolation", plain.isolation),
        tuple(map(_container, wire.get("containers", ()))),
        tuple(wire.get("refused", ())),
        wire.get("refusedOmitted"),
        wire.get("releaseAt"),
    )


def unknown_fields(wire: object) -> tuple[str, ...]:
    """Fields of a valid spec that this enforcer does not have, which a later operator writes."""
    return tuple(dict.fromkeys(find_unknown(wire, SPEC_SCHEMA, "spec")))


def _pools(wire: Mapping[str, Any]) -> Pools:
    return Pools(CpuSet.parse(wire["reserved"]), CpuSet.parse(wire["shared"]))


def _container(wire: Mapping[str, Any]) -> Container:
    return Container(
        wire["podUID"],
        wire["namespace"],
        wire["pod"],
        wire["container"],
        CpuSet.parse(wire.get("cpus", "")),
        MemSet.parse(wire.get("mems", "")),
        wire.get("exclusive", False),
        wire.get("outdated"),
        wire.get("claimed"),
    )
