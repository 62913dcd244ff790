"""A node's objects as v1beta1 has them: lines, a report and the hardware."""

from typing import Any, NamedTuple

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.forms.lines import print_line
from numapin_api.forms.report import Generation, Seen, report_fields
from numapin_api.forms.spec import refusals_of, spec_with_lines
from numapin_api.names import NODE_ASSIGNMENT_KIND, NODE_REPORT_KIND, NODE_TOPOLOGY_KIND
from numapin_api.schema.plain import ContainerAssignment, ContainerStatus

Json = dict[str, Any]


class NodeObjects(NamedTuple):
    """The objects of one node."""

    assignment: Json
    report: Json
    topology: Json


def in_three(body: Json) -> NodeObjects:
    """A NodeAssignment as v1alpha1 has it, as three objects that say the same.

    Its containers are as new as its generation, and its status is about its generation.
    """
    metadata, spec, status = body["metadata"], body.get("spec") or {}, body.get("status") or {}
    listed = spec.get("containers") or ()
    lines = [print_line(one, metadata["generation"]) for one in listed]
    assignment = body | {
        "kind": NODE_ASSIGNMENT_KIND,
        "spec": spec_with_lines(spec, lines),
        "status": refusals_of(spec),
    }
    if not status:
        return NodeObjects(
            assignment, _part(body, NODE_REPORT_KIND), _part(body, NODE_TOPOLOGY_KIND)
        )
    seen = Generation(metadata.get("uid", ""), status.get("observedGeneration", 0))
    entries = [ContainerAssignment.from_wire(one) for one in listed]
    found = [_in_force(one) for one in status.get("containers") or ()]
    report = report_fields(
        status,
        found,
        status.get("running") or (),
        {one.key: one for one in entries},
        Seen(seen, seen),
    )
    return NodeObjects(
        assignment,
        _part(body, NODE_REPORT_KIND) | {"status": report},
        _part(body, NODE_TOPOLOGY_KIND) | {"status": status.get("topology") or {}},
    )


def all_in_three(bodies: list[Json]) -> list[Json]:
    """Some objects, each NodeAssignment of them as three."""
    return [
        each
        for body in bodies
        for each in (in_three(body) if body["kind"] == NODE_ASSIGNMENT_KIND else (body,))
    ]


def _in_force(one: Json) -> ContainerStatus:
    return ContainerStatus(
        pod_uid=one["podUID"],
        container=one["container"],
        cpus=CpuSet.parse(one["cpus"]),
        mems=MemSet.parse(one.get("mems", "")),
        exclusive=one.get("exclusive", False),
    )


def _part(body: Json, kind: str) -> Json:
    name = body["metadata"]["name"]
    metadata = {"name": name, "uid": f"{kind}-{name}", "resourceVersion": "1"}
    return {"apiVersion": body.get("apiVersion"), "kind": kind, "metadata": metadata}
