"""One NodeAssignment with what its enforcer reports, as a slim frozen value. Does no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from numapin_api.forms.report import ReadReport, read_report
from numapin_api.forms.spec import OPERATOR_STATUS, read_spec, spec_refusals
from numapin_api.schema.plain_assignment import NodeAssignmentSpec, NodeAssignmentStatus
from numapin_api.topology import Topology
from numapin_operator.observe.assignments.decode import (
    InvalidPartError,
    decode_spec,
    decode_status,
)
from numapin_operator.observe.assignments.hardware import Hardware, decode_hardware
from numapin_operator.observe.assignments.report import ReportView, TopologyView
from numapin_operator.observe.node_status import json_object
from numapin_operator.observe.records import generation_of

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
    "devices",
)
"""The fields of an enforcer's status that decisions use, besides the topology.

While a spec has no pools, or a container is moved, its containers as well.
"""


@dataclass(frozen=True, slots=True)
class Form:
    """How the API server has a spec.

    Attributes:
        has_lines: whether it has the form of v1beta1.
        lines: the line of each container; empty in the form of v1alpha1.
        since: for each container, the generation that first had its CPUs and NUMA nodes.
        told: what the status says of refused pods, which the form of v1alpha1 has in the spec.
    """

    has_lines: bool = False
    lines: tuple[str, ...] = ()
    since: tuple[int, ...] = ()
    told: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reported:
    """What an enforcer reports of a node.

    Attributes:
        status: only the fields of `USED_STATUS`.
        has_running: whether it says which pods run, if only that none does.
        hardware: None until it has been reported.
        problem: why it cannot be read, which only happens if a CRD is not ours; else None.
        is_there: whether it has reported at all.
    """

    status: NodeAssignmentStatus = field(default_factory=NodeAssignmentStatus)
    has_running: bool = False
    hardware: Hardware | None = None
    problem: str | None = None
    is_there: bool = False


@dataclass(frozen=True, slots=True)
class AssignmentView:
    """One NodeAssignment.

    Attributes:
        owner_uid: the UID of the Node that owns it, as earlier releases wrote it; else None.
        status: what its enforcer reports, in its NodeReport or, an older one, in the object itself;
            only the fields of `USED_STATUS`.
        has_running: whether that says which pods run, if only that none does.
        hardware: of the NodeTopology, or as an older enforcer reports it; None until then.
        metadata: what a replacing write carries.
        problem: why it is invalid, which only happens if the CRD is not ours; else None.
        form: how the API server has the spec.
        own: what an older enforcer reports in the object itself.
        takes_lines: whether its enforcer reads lines: it has written its NodeReport, or had lines
            before and does not report in the object itself, as an older one would.
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
    form: Form = field(default_factory=Form, repr=False)
    own: Reported = field(default_factory=Reported, repr=False)
    takes_lines: bool = False

    @property
    def topology(self) -> Topology | None:
        """The node's hardware, once its enforcer has reported it."""
        return self.hardware.topology if self.hardware else None

    def decides_like(self, other: "AssignmentView") -> bool:
        """Whether both lead to the same decision: they differ in version and metadata at most.

        An enforcer of an earlier release writes the time of its last pass every few minutes.
        """
        return other == replace(self, version=other.version, metadata=other.metadata)

    def reported(
        self, report: ReportView | None, topology: TopologyView | None
    ) -> "AssignmentView":
        """The same with what the objects of its enforcer say; None if there are none.

        What an older enforcer reports in the NodeAssignment itself comes first: one of this version
        removes that once it has written its NodeReport.
        """
        is_read = report is not None and report.is_written
        takes_lines = (is_read or self.form.has_lines) and not self.own.is_there
        found = self._found(report, topology) if self.own.problem is None else self.own
        after = replace(
            self,
            status=found.status,
            has_running=found.has_running,
            hardware=found.hardware,
            problem=found.problem,
            takes_lines=takes_lines,
        )
        return self if after == self else after

    def told_by(self, report: ReportView) -> ReadReport | None:
        """What a report says of this NodeAssignment; None if it is of another."""
        entries, since = self.spec.containers, self.form.since
        return read_report(report.status, self.uid, self.generation, entries, since)

    def _found(self, report: ReportView | None, topology: TopologyView | None) -> Reported:
        if self.own.is_there:
            return self.own
        hardware, problem = None, None
        if topology is not None:
            hardware, problem = topology.hardware, topology.problem
        silent = Reported(self._all_running(), hardware=hardware, problem=problem)
        if report is None or not report.is_written or problem is not None:
            return silent
        try:
            read = self.told_by(report)
            if read is None:
                return silent
            status = _decode_used(
                read.status(with_containers=_needs_containers(self.spec)), self.spec
            )
        except InvalidPartError as error:
            return replace(silent, problem=f"NodeReport: {error}")
        except Exception as error:  # noqa: BLE001 - what one node reports must not stop the others
            return replace(silent, problem=f"its NodeReport cannot be read: {error!r}")
        return Reported(status, has_running=True, hardware=hardware)

    def _all_running(self) -> NodeAssignmentStatus:
        """While nothing is reported, nothing counts as gone."""
        uids = sorted({one.pod_uid for one in self.spec.containers})
        return NodeAssignmentStatus(running=tuple(uids))

    @classmethod
    def decode(
        cls,
        body: Json,
        before: "AssignmentView | None" = None,
        written: "tuple[Json, NodeAssignmentSpec, Form] | None" = None,
    ) -> "AssignmentView":
        """Decode a NodeAssignment; what its node's NodeReport says is not in it yet.

        Args:
            body: the object.
            before: an earlier state of it; its unchanged parts are reused, and all of it if it is
                of the same version. A later state is not used: a restored etcd repeats generations.
            written: the spec just written, as JSON and decoded, if `body` is the answer to that.
        """
        metadata = body["metadata"]
        version = int(metadata["resourceVersion"])
        if before is not None and (before.uid != metadata["uid"] or before.version > version):
            before = None
        if before is not None and before.version == version:
            return before
        spec, form, own = _content(body, before, written)
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            version=version,
            generation=generation_of(metadata),
            owner_uid=_owner_uid(metadata),
            deleting="deletionTimestamp" in metadata,
            metadata=_carried(metadata),
            spec=spec,
            form=form,
            own=own,
            status=own.status,
            has_running=own.has_running,
            hardware=own.hardware,
            problem=own.problem,
        )


def _needs_containers(spec: NodeAssignmentSpec) -> bool:
    return spec.pools is None or any(one.moving for one in spec.containers)


def _decode_used(raw: Json, spec: NodeAssignmentSpec) -> NodeAssignmentStatus:
    """What decisions use of a status; see `USED_STATUS`."""
    used = (*USED_STATUS, "containers") if _needs_containers(spec) else USED_STATUS
    return decode_status({key: raw[key] for key in used if key in raw})


def _content(
    body: Json,
    before: AssignmentView | None,
    written: tuple[Json, NodeAssignmentSpec, Form] | None,
) -> tuple[NodeAssignmentSpec, Form, Reported]:
    """What may be invalid: from the first invalid part on, it is empty."""
    spec, form, status, hardware = NodeAssignmentSpec(), Form(), NodeAssignmentStatus(), None
    raw, problem = json_object(body, "status"), None
    try:
        spec, form = _decode_spec(body, before, written)
        status = _decode_used(raw, spec)
        known = before.own.hardware if before else None
        hardware = decode_hardware(raw.get("topology"), known)
    except InvalidPartError as error:
        problem = str(error)
    except Exception as error:  # noqa: BLE001 - what one node reports must not stop the others
        problem = f"it cannot be read: {error!r}"
    # The API server fills in zeros.
    is_there = any(raw[key] for key in raw.keys() - OPERATOR_STATUS)
    return spec, form, Reported(status, "running" in raw, hardware, problem, is_there)


def _decode_spec(
    body: Json,
    before: AssignmentView | None,
    written: tuple[Json, NodeAssignmentSpec, Form] | None,
) -> tuple[NodeAssignmentSpec, Form]:
    """The spec. The API server counts its changes in `metadata.generation`."""
    raw, generation = body.get("spec") or {}, body["metadata"].get("generation", 1)
    status = json_object(body, "status")
    told = {key: status[key] for key in OPERATOR_STATUS if status.get(key)}
    if before is not None and before.own.problem is None and before.generation == generation:
        if told == before.form.told:
            return before.spec, before.form
        if before.form.has_lines:
            refused = decode_spec(spec_refusals(told))
            spec = replace(
                before.spec,
                refused=refused.refused,
                refused_omitted=refused.refused_omitted,
                refused_resizes=refused.refused_resizes,
            )
            return spec, replace(before.form, told=told)
    if written is not None and written[0] == raw:
        return written[1], replace(written[2], told=told)
    read = read_spec(body)
    if read.faults:
        raise InvalidPartError(read.faults[0])
    return decode_spec(read.wire), Form(read.has_lines, read.lines, read.since, told)


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


def _owner_uid(metadata: Json) -> str | None:
    owners = metadata.get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, Mapping) and owner.get("kind") == "Node":
            return str(owner.get("uid"))
    return None
