"""Nodes, policies and assignments of the API server, decoded into slim frozen values.

Does no I/O.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from sys import intern
from typing import Any, Final

from pydantic import ValidationError

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.hardware.compact import restore_topology
from numapin_api.hardware.status import TopologyStatus
from numapin_api.invalid import invalid_fields
from numapin_api.nodeassignment import NodeAssignmentSpec, NodeAssignmentStatus
from numapin_api.policystatus import CpuPolicyStatus
from numapin_api.quantity import millis
from numapin_api.topology import Topology

Json = Mapping[str, Any]

CARRIED_METADATA: Final = ("name", "uid", "resourceVersion", "labels", "annotations", "finalizers")
"""The metadata that a replacing write must carry, or it would delete what others set."""

USED_STATUS: Final = ("observedGeneration", "running", "conditions")
"""The fields of an enforcer's status that decisions use, besides the topology."""


@dataclass(frozen=True, slots=True)
class NodeView:
    """One Kubernetes node: its labels, and how much CPU its kubelet reserves."""

    name: str
    uid: str
    labels: Mapping[str, str]
    capacity_millicpus: int
    allocatable_millicpus: int

    @classmethod
    def decode(cls, body: Json) -> "NodeView":
        """Decode a Node; its capacity is 0 until its kubelet has reported one.

        Raises:
            QuantityError: a CPU quantity does not parse.
        """
        metadata, status = body["metadata"], body.get("status") or {}
        capacity = millis((status.get("capacity") or {}).get("cpu", "0"))
        allocatable = (status.get("allocatable") or {}).get("cpu")
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            labels=slim_labels(metadata),
            capacity_millicpus=capacity,
            allocatable_millicpus=capacity if allocatable is None else millis(allocatable),
        )


@dataclass(frozen=True, slots=True)
class PolicyView:
    """One CpuPolicy.

    Attributes:
        problem: why its spec is invalid, which only happens if the CRD is not ours; else None.
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

    @classmethod
    def decode(cls, body: Json) -> "PolicyView":
        """Decode a CpuPolicy. An invalid one still selects the nodes that its raw fields name."""
        metadata, raw = body["metadata"], body.get("spec") or {}
        problem = None
        try:
            spec = CpuPolicySpec.model_validate(raw)
        except ValidationError as error:
            problem = str(invalid_fields(error)[0])
            spec = CpuPolicySpec.model_construct(
                node_selector=raw.get("nodeSelector") or {}, priority=raw.get("priority") or 0
            )
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            version=int(metadata["resourceVersion"]),
            generation=metadata.get("generation", 1),
            created=metadata.get("creationTimestamp") or "",
            deleting="deletionTimestamp" in metadata,
            spec=spec,
            status=_policy_status(body.get("status") or {}),
            problem=problem,
        )

    def decides_like(self, other: "PolicyView") -> bool:
        """Whether both lead to the same assignments and outcomes: all but metadata and status."""
        return (self.uid, self.generation, self.created, self.deleting, self.problem) == (
            other.uid,
            other.generation,
            other.created,
            other.deleting,
            other.problem,
        ) and self.spec == other.spec


@dataclass(frozen=True, slots=True)
class Hardware:
    """A reported topology, and the digest of the JSON that it was decoded from."""

    topology: Topology
    digest: bytes


@dataclass(frozen=True, slots=True)
class AssignmentView:
    """One NodeAssignment.

    Attributes:
        owner_uid: the UID of the Node that owns it.
        status: only the fields of `USED_STATUS`.
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

    @property
    def topology(self) -> Topology | None:
        """The node's hardware, once its enforcer has reported it."""
        return self.hardware.topology if self.hardware else None

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
        metadata, raw = body["metadata"], body.get("status") or {}
        owners = metadata.get("ownerReferences") or ()
        version = int(metadata["resourceVersion"])
        if before is not None and (before.uid != metadata["uid"] or before.version > version):
            before = None
        if before is not None and before.version == version:
            return before
        spec, status, hardware, problem = NodeAssignmentSpec(), NodeAssignmentStatus(), None, None
        try:
            spec = _decode_spec(body, before, written)
            status = NodeAssignmentStatus.model_validate(
                {key: raw[key] for key in USED_STATUS if key in raw}
            )
            hardware = _decode_hardware(raw.get("topology"), before)
        except ValidationError as error:
            problem = str(invalid_fields(error)[0])
        except Exception as error:  # noqa: BLE001 - what one node reports must not stop the others
            problem = f"it cannot be read: {error!r}"
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            version=version,
            generation=metadata.get("generation", 1),
            owner_uid=next((one["uid"] for one in owners if one["kind"] == "Node"), None),
            deleting="deletionTimestamp" in metadata,
            spec=spec,
            status=status,
            hardware=hardware,
            metadata=_carried(metadata),
            problem=problem,
        )


def _carried(metadata: Json) -> Json:
    """The metadata that a replacing write must carry, with the owners that are no nodes."""
    carried = {name: metadata[name] for name in CARRIED_METADATA if name in metadata}
    others = [one for one in metadata.get("ownerReferences") or () if one["kind"] != "Node"]
    return carried | {"ownerReferences": others} if others else carried


def slim_labels(metadata: Json) -> Mapping[str, str]:
    """An object's labels; equal strings of many objects share their memory."""
    labels = metadata.get("labels") or {}
    return {intern(key): intern(value) for key, value in labels.items()}


def _decode_spec(
    body: Json, before: AssignmentView | None, written: NodeAssignmentSpec | None
) -> NodeAssignmentSpec:
    """The spec. The API server counts its changes in `metadata.generation`."""
    raw, generation = body.get("spec") or {}, body["metadata"].get("generation", 1)
    if before is not None and before.problem is None and before.generation == generation:
        return before.spec
    if written is not None and written.to_wire() == raw:
        return written
    return NodeAssignmentSpec.model_validate(raw)


def _decode_hardware(raw: Json | None, before: AssignmentView | None) -> Hardware | None:
    """The topology. Decoding one takes milliseconds, and it hardly ever changes."""
    if not raw:
        return None
    text = json.dumps(raw, sort_keys=True)
    digest = blake2b(text.encode(), digest_size=16).digest()
    if before is not None and before.hardware is not None and before.hardware.digest == digest:
        return before.hardware
    return Hardware(_parse_topology(text), digest)


@lru_cache(maxsize=256)
def _parse_topology(text: str) -> Topology:
    """Nodes of one model often report the same topology, and then share it."""
    return restore_topology(TopologyStatus.model_validate_json(text))


def _policy_status(raw: Json) -> CpuPolicyStatus:
    """The last status; an invalid one counts as empty, because only the operator writes it."""
    try:
        return CpuPolicyStatus.model_validate(raw)
    except ValidationError:
        return CpuPolicyStatus()
