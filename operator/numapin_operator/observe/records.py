"""Nodes, policies and assignments of the API server, decoded into slim frozen values.

Does no I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from sys import intern
from typing import Any, Final

from pydantic import ValidationError

from numapin_api.conditions.reasons import Reason
from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.invalid import invalid_fields, unknown_fields
from numapin_api.quantity import QuantityError
from numapin_api.schema.plain_assignment import NodeAssignmentSpec, NodeAssignmentStatus
from numapin_api.status.policy import CpuPolicyStatus
from numapin_api.topology import Topology
from numapin_operator.observe.assignment import InvalidPartError, decode_spec, decode_status
from numapin_operator.observe.invalid_policy import remaining_spec, valid_delay
from numapin_operator.observe.node_status import (
    allocatable,
    json_object,
    not_served,
    system_reservation,
)
from numapin_operator.observe.reported_hardware import (
    Hardware,
    decode_hardware,
)
from numapin_operator.placement import Allocatable, SystemReservation

Json = Mapping[str, Any]

CARRIED_METADATA: Final = ("name", "uid", "resourceVersion", "labels", "annotations", "finalizers")
"""The metadata that a replacing write must carry, or it would delete what others set."""

USED_STATUS: Final = (
    "observedGeneration",
    "running",
    "conditions",
    "freeHugepages",
    "kubeletContainers",
    "claims",
    "unboundMemory",
)
"""The fields of an enforcer's status that decisions use, besides the topology.

While a spec has no pools, or a container is moved, its containers as well.
"""


@dataclass(frozen=True, slots=True)
class NodeView:
    """One Kubernetes node: its labels, and what its kubelet keeps back and offers.

    Attributes:
        problem: why that is not known, which stalls the node; else None.
        not_served: why no enforcer can be expected to answer there now; else None.
        allocatable: what it offers to pods; None if it does not say so.
    """

    name: str
    uid: str
    labels: Mapping[str, str]
    system: SystemReservation
    problem: str | None = None
    not_served: Reason | None = None
    allocatable: Allocatable | None = None

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
        )


@dataclass(frozen=True, slots=True)
class PolicyView:
    """One CpuPolicy.

    Attributes:
        problem: why its spec is invalid, which only happens if the CRD is not ours; else None.
        unknown: fields of its spec that this operator does not have, which a later CRD has.
        says_delay: whether its `releaseDelay` is valid, or left out of a valid spec.
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
            generation=_generation(metadata),
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


@dataclass(frozen=True, slots=True)
class AssignmentView:
    """One NodeAssignment.

    Attributes:
        owner_uid: the UID of the Node that owns it, as earlier releases wrote it; else None.
        status: only the fields of `USED_STATUS`.
        has_running: whether `status.running` is there, if only as an empty list.
        hardware: `status.topology`; None until the enforcer has reported it.
        metadata: what a replacing write carries.
        problem: why it is invalid, which only happens if the CRD is not ours; else None.
    """

    name: str
    uid: str
    version: int
    generation: int
    owner_uid: str | None
    deleting: bool
    spec: NodeAssignmentSpec
    status: NodeAssignmentStatus
    hardware: Hardware | None
    metadata: Json = field(repr=False)
    problem: str | None = None
    has_running: bool = False

    @property
    def topology(self) -> Topology | None:
        """The node's hardware, once its enforcer has reported it."""
        return self.hardware.topology if self.hardware else None

    def decides_like(self, other: "AssignmentView") -> bool:
        """Whether both lead to the same decision: they differ in version and metadata at most.

        An enforcer of an earlier release writes the time of its last pass every few minutes.
        """
        return other == replace(self, version=other.version, metadata=other.metadata)

    @classmethod
    def decode(
        cls,
        body: Json,
        before: "AssignmentView | None" = None,
        written: NodeAssignmentSpec | None = None,
    ) -> "AssignmentView":
        """Decode a NodeAssignment.

        Args:
            body: the object.
            before: an earlier state of it; its unchanged parts are reused, and all of it if it is
                of the same version. A later state is not used: a restored etcd repeats generations.
            written: the spec just written, if `body` is the answer to that write.
        """
        metadata = body["metadata"]
        version = int(metadata["resourceVersion"])
        if before is not None and (before.uid != metadata["uid"] or before.version > version):
            before = None
        if before is not None and before.version == version:
            return before
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            version=version,
            generation=_generation(metadata),
            owner_uid=_owner_uid(metadata),
            deleting="deletionTimestamp" in metadata,
            metadata=_carried(metadata),
            **_content(body, before, written),
        )


def _content(
    body: Json, before: AssignmentView | None, written: NodeAssignmentSpec | None
) -> dict[str, Any]:
    """The fields of a view that may be invalid: from the first invalid one on, they are empty."""
    spec, status, hardware, problem = NodeAssignmentSpec(), NodeAssignmentStatus(), None, None
    raw = json_object(body, "status")
    try:
        spec = _decode_spec(body, before, written)
        changes = spec.pools is None or any(one.moving for one in spec.containers)
        used = (*USED_STATUS, "containers") if changes else USED_STATUS
        status = decode_status({key: raw[key] for key in used if key in raw})
        hardware = decode_hardware(raw.get("topology"), before.hardware if before else None)
    except InvalidPartError as error:
        problem = str(error)
    except Exception as error:  # noqa: BLE001 - what one node reports must not stop the others
        problem = f"it cannot be read: {error!r}"
    return {
        "spec": spec,
        "status": status,
        "hardware": hardware,
        "problem": problem,
        "has_running": "running" in raw,
    }


def _carried(metadata: Json) -> Json:
    """The metadata that a replacing write must carry, with the owners that are no nodes.

    It clears the owners of fields: for each write, the API server compares every field with them.
    Those of an object that somebody applies on the server's side stay, or they would lose theirs.
    Source: Kubernetes, "Server-Side Apply", "Clearing managedFields".
    """
    carried = {name: metadata[name] for name in CARRIED_METADATA if name in metadata}
    if others := [one for one in metadata.get("ownerReferences") or () if one["kind"] != "Node"]:
        carried["ownerReferences"] = others
    managers = metadata.get("managedFields") or ()
    if managers and all(one.get("operation") != "Apply" for one in managers):
        carried["managedFields"] = [{}]
    return carried


def slim_labels(metadata: Json) -> Mapping[str, str]:
    """An object's labels; equal strings of many objects share their memory."""
    pairs = json_object(metadata, "labels").items()
    return {intern(key): intern(value) for key, value in pairs if isinstance(value, str)}


def _generation(metadata: Json) -> int:
    generation = metadata.get("generation")
    return generation if isinstance(generation, int) else 1


def _owner_uid(metadata: Json) -> str | None:
    owners = metadata.get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, Mapping) and owner.get("kind") == "Node":
            return str(owner.get("uid"))
    return None


def _decode_spec(
    body: Json, before: AssignmentView | None, written: NodeAssignmentSpec | None
) -> NodeAssignmentSpec:
    """The spec. The API server counts its changes in `metadata.generation`."""
    raw, generation = body.get("spec") or {}, body["metadata"].get("generation", 1)
    if before is not None and before.problem is None and before.generation == generation:
        return before.spec
    if written is not None and written.to_wire() == raw:
        return written
    return decode_spec(raw)


def _policy_status(raw: Json) -> CpuPolicyStatus:
    """The last status; an invalid one counts as empty, because only the operator writes it."""
    try:
        return CpuPolicyStatus.model_validate(raw)
    except ValidationError:
        return CpuPolicyStatus()
