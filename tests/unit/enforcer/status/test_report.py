"""What a status says, and by which conditions, of a pass and of the background tasks."""

import json
from dataclasses import replace

import pytest

from numapin_api import nodeassignment as models
from numapin_api.conditions.reasons import Obstacle
from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import (
    ContainerAssignment,
    ContainerStatus,
    DevicesStatus,
    Disturbance,
    NodeAssignmentSpec,
    NodeAssignmentStatus,
    PoolsInForce,
)
from numapin_enforcer.assignment.decode import decode_spec
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.status.facts import Facts
from numapin_enforcer.status.in_force.summary import Summary
from numapin_enforcer.status.report import COUNT_FIELDS, STATUS_FIELDS, Report, build_report
from numapin_enforcer.status.state import Part, State
from support.values.specs_and_trees import machine

ONE = ContainerStatus(pod_uid="u", container="c", cpus=CpuSet([1]), exclusive=True)
POOLS = PoolsInForce(reserved=CpuSet([0]), shared=CpuSet([0]), exclusive=CpuSet([1]))
SUMMARY = Summary((ONE,), POOLS, ("u",))
SPEC = NodeAssignmentSpec()
AUDITED = NodeAssignmentSpec(
    mode="Audit",
    containers=(ContainerAssignment("u", "d", "p", "c", CpuSet([1]), exclusive=True),),
)
STUCK, BUSY = Obstacle("Stuck", "repair it"), Obstacle("Busy", "wait")


def report(
    summary: Summary | None = SUMMARY,
    spec: NodeAssignmentSpec | None = SPEC,
    state: State = State(),  # noqa: B008 (frozen)
) -> Report:
    one = Pass(began_seconds=0.0, topology=machine(), spec=spec)
    return build_report(
        one, Facts(content=NodeAssignmentStatus(drift_count=3)), {Part.MEMORY: state}, summary
    )


def conditions(found: Report) -> dict[str, tuple[bool, str, str]]:
    return {one.type: (one.holds, one.reason, one.message) for one in found.verdicts}


def test_a_status_holds_what_the_kernel_has_beside_the_facts() -> None:
    found = report()
    content = found.content
    assert (content.containers, content.pools, content.running) == ((ONE,), POOLS, ("u",))
    assert (content.drift_count, found.blind) == (3, False)


def test_a_report_without_a_readable_tree_is_blind() -> None:
    found = report(None)
    assert (found.content.containers, found.blind) == ((), True)


def test_a_report_is_a_status_as_the_models_take_it() -> None:
    wire = report().wire({}, "2030-01-01T00:00:00Z")
    assert {one["type"] for one in wire["conditions"]} == {"Ready", "Reconciling", "Stalled"}
    model = models.NodeAssignmentStatus.model_validate_json(json.dumps(wire), strict=True)
    assert model.to_wire() == wire


def test_devices_are_in_a_node_report_and_in_no_node_assignment() -> None:
    facts = Facts(content=NodeAssignmentStatus(devices=DevicesStatus("late")))
    found = build_report(Pass(began_seconds=0.0, topology=machine()), facts, {}, SUMMARY)
    assert found.node_report({}, "2030-01-01T00:00:00Z")["devices"]["message"] == "late"
    assert "devices" not in found.wire({}, "2030-01-01T00:00:00Z")


def test_disturbances_are_in_a_node_report_alone() -> None:
    seen = (Disturbance("Task", "cron", CpuSet((4,))),)
    one = Pass(began_seconds=0.0, topology=machine(), disturbances=seen)
    found = build_report(one, Facts(content=NodeAssignmentStatus()), {}, SUMMARY)
    rows = [{"kind": "Task", "name": "cron", "cpus": "4"}]
    assert found.node_report({}, "2030-01-01T00:00:00Z")["disturbances"] == rows
    assert found.wire({}, "2030-01-01T00:00:00Z")["disturbances"] == []
    assert "disturbances" not in report().node_report({}, "2030-01-01T00:00:00Z")


def test_an_audit_says_what_would_change() -> None:
    found = report(Summary((replace(ONE, exclusive=False),)), AUDITED)
    fine = "mode Audit writes nothing here; 1 running container would get exclusive CPUs"
    assert conditions(found)["Ready"] == (True, "Audited", fine)


@pytest.mark.parametrize(
    ("found", "fine"),
    [
        (report(spec=None), "there is nothing to enforce"),
        (report(spec=NodeAssignmentSpec(mode="None")), "every cgroup has what its parent has"),
        (report(Summary()), "0 containers with exclusive CPUs"),
        (report(), "1 container with exclusive CPUs"),
        (
            report(spec=NodeAssignmentSpec(release_at="2030-01-01T00:00:30Z")),
            "1 container with exclusive CPUs; no policy wants them any more: given back at "
            "2030-01-01T00:00:30Z",
        ),
        (report(Summary((ONE, ONE))), "2 containers with exclusive CPUs"),
        (report(Summary((replace(ONE, exclusive=False),))), "0 containers with exclusive CPUs"),
    ],
)
def test_a_healthy_node_is_ready(found: Report, fine: str) -> None:
    assert conditions(found) == {
        "Ready": (True, "Enforced", fine),
        "Reconciling": (False, "Settled", ""),
        "Stalled": (False, "NotStalled", ""),
    }


def test_the_first_obstacle_is_reported() -> None:
    other = Obstacle("Other", "later")
    assert conditions(report(state=State((STUCK, other), (BUSY, other)))) == {
        "Ready": (False, "Stuck", "repair it"),
        "Reconciling": (True, "Busy", "wait"),
        "Stalled": (True, "Stuck", "repair it"),
    }
    assert conditions(report(state=State(working=(BUSY,))))["Ready"] == (False, "Busy", "wait")


def test_outdated_containers_and_refused_pods_are_counted_and_leave_the_node_ready() -> None:
    names = {"podUID": "u", "namespace": "ns", "pod": "p", "container": "c", "cpus": "1"}
    refusal = {"podUID": "v", "namespace": "ns", "pod": "q", "reason": "r", "message": "m"}
    spec = decode_spec({"containers": [names | {"outdated": True}, names], "refused": [refusal]})
    content, found = report(spec=spec).content, conditions(report(spec=spec))
    assert (content.outdated, content.refused) == (1, 1)
    assert found["Ready"][0]
    assert found["Reconciling"] == (
        True,
        "WaitingForContainers",
        "the policy would place 1 container otherwise, until they end: ns/p/c",
    )
    assert conditions(report(spec=spec, state=State(working=(BUSY,))))["Reconciling"][1] == "Busy"


def test_of_several_obstacles_the_one_of_the_first_part_counts() -> None:
    states = {
        Part.WATCH: State((Obstacle("Late", "last"),)),
        Part.SLICES: State(note="systemd", stale_cpus={}),
        Part.KUBEPODS: State((STUCK,)),
        Part.MACHINE: State(note="a part of the machine"),
        Part.CONTAINERS: State((Obstacle("Unnamed", "later"),)),
    }
    one = Pass(began_seconds=0.0, topology=machine(), spec=SPEC)
    assert conditions(build_report(one, Facts(), states, SUMMARY))["Ready"][1] == "Stuck"
    states = {part: replace(state, stalled=()) for part, state in states.items()}
    message = conditions(build_report(one, Facts(), states, SUMMARY))["Ready"][2]
    assert message == "1 container with exclusive CPUs; a part of the machine; systemd"


def test_every_field_of_a_status_is_an_enforcers_or_the_operators() -> None:
    """A field that neither knows would stay for ever when a node reports elsewhere."""
    fields = {one.alias or name for name, one in models.NodeAssignmentStatus.model_fields.items()}
    of_operator = {"refusals", "refusalsOmitted", "resizeRefusals"}
    assert fields - of_operator == STATUS_FIELDS | COUNT_FIELDS
