"""Nodes and policies of the API server, decoded into slim frozen values.

Does no I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any

from pydantic import ValidationError

from numapin_api.conditions.reasons import Reason
from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.invalid import invalid_fields, unknown_fields
from numapin_api.quantity import QuantityError
from numapin_api.status.policy import CpuPolicyStatus
from numapin_operator.observe.holding.node_rules import Taint, taints_of
from numapin_operator.observe.invalid_policy import remaining_spec, valid_delay
from numapin_operator.observe.node_mode import is_released, why_paused
from numapin_operator.observe.node_status import (
    allocatable,
    json_object,
    not_served,
    system_reservation,
)
from numapin_operator.placement import Allocatable, SystemReservation

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NodeView:
    """One Kubernetes node: its labels, and what its kubelet keeps back and offers.

    Attributes:
        problem: why that is not known, which stalls the node; else None.
        not_served: why no enforcer can be expected to answer there now; else None.
        allocatable: what it offers to pods; None if it does not say so.
        taints: those that keep pods away, with that of a node that is cordoned.
        paused: why nothing may be changed there; empty if it may.
        released: whether no policy may select it.
    """

    name: str
    uid: str
    labels: Mapping[str, str]
    system: SystemReservation
    problem: str | None = None
    not_served: Reason | None = None
    allocatable: Allocatable | None = None
    taints: tuple[Taint, ...] = ()
    paused: str = ""
    released: bool = False

    @classmethod
    def decode(cls, body: Json) -> "NodeView":
        """Decode a Node; it keeps nothing back until its kubelet has reported its capacity."""
        metadata, problem, system = body["metadata"], None, SystemReservation()
        offered: Allocatable | None = None
        try:
            system = system_reservation(json_object(body, "status"))
            offered = allocatable(json_object(body, "status"))
        except QuantityError as error:
            problem = f"status.capacity or status.allocatable of the Node: {error}"
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            labels=slim_labels(metadata),
            system=system,
            problem=problem,
            not_served=not_served(json_object(body, "status")),
            allocatable=offered,
            taints=taints_of(json_object(body, "spec")),
            paused=why_paused(metadata),
            released=is_released(metadata),
        )


@dataclass(frozen=True, slots=True)
class PolicyView:
    """One CpuPolicy.

    Attributes:
        problem: why its spec is invalid, which only happens if the CRD is not ours; else None.
        unknown: fields of its spec that this operator does not have, which a later CRD has.
        says_delay: whether its `releaseDelay` is valid, or left out of a valid spec.
        divided: fields that have no effect while several shards divide the nodes.
    """

    name: str
    uid: str
    version: int
    generation: int
    created: str
    deleting: bool
    spec: CpuPolicySpec
    status: CpuPolicyStatus
    problem: str | None = None
    unknown: tuple[str, ...] = ()
    says_delay: bool = True
    divided: tuple[str, ...] = ()

    @classmethod
    def decode(cls, body: Json) -> "PolicyView":
        """Decode a CpuPolicy. An invalid one still selects the nodes that its raw fields name."""
        metadata, raw = body["metadata"], body.get("spec") or {}
        problem = None
        try:
            spec = CpuPolicySpec.model_validate(raw)
        except ValidationError as error:
            problem = str(invalid_fields(error)[0])
            spec = remaining_spec(raw, body.get("status"))
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            version=int(metadata["resourceVersion"]),
            generation=generation_of(metadata),
            created=str(metadata.get("creationTimestamp") or ""),
            deleting="deletionTimestamp" in metadata,
            spec=spec,
            status=_policy_status(body.get("status") or {}),
            problem=problem,
            unknown=unknown_fields(CpuPolicySpec, raw, "spec"),
            says_delay=problem is None or valid_delay(raw) is not None,
        )

    def decides_like(self, other: "PolicyView") -> bool:
        """Whether both lead to the same assignments and outcomes: all but metadata and status."""
        mine = (self.uid, self.generation, self.created, self.deleting, self.problem, self.unknown)
        return self.spec == other.spec and mine == (
            other.uid,
            other.generation,
            other.created,
            other.deleting,
            other.problem,
            other.unknown,
        )


def slim_labels(metadata: Json) -> Mapping[str, str]:
    """An object's labels; equal strings of many objects share their memory."""
    pairs = json_object(metadata, "labels").items()
    return {intern(key): intern(value) for key, value in pairs if isinstance(value, str)}


def generation_of(metadata: Json) -> int:
    """The generation of an object; 1 if it has none."""
    generation = metadata.get("generation")
    return generation if isinstance(generation, int) else 1


def _policy_status(raw: Json) -> CpuPolicyStatus:
    """The last status; an invalid one counts as empty, because only the operator writes it."""
    try:
        return CpuPolicyStatus.model_validate(raw)
    except ValidationError:
        return CpuPolicyStatus()
