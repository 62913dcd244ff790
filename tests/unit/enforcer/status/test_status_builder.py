"""What a status says, and by which conditions, of a pass and of the background tasks."""

import json
from dataclasses import replace

import pytest

from numapin_api import nodeassignment as models
from numapin_api.conditions.reasons import Obstacle
from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import (
    ContainerStatus,
    NodeAssignmentSpec,
    NodeAssignmentStatus,
    PoolsInForce,
)
from numapin_enforcer.assignment.decode import decode_spec
from numapin_enforcer.status.status_builder import Scene, build_report
from numapin_enforcer.status.summary import Summary

ONE = ContainerStatus(pod_uid="u", container="c", cpus=CpuSet([1]), exclusive=True)
POOLS = PoolsInForce(reserved=CpuSet([0]), shared=CpuSet([0]), exclusive=CpuSet([1]))
SUMMARY = Summary((ONE,), POOLS, ("u",))
SCENE = Scene(NodeAssignmentStatus(drift_count=3), NodeAssignmentSpec(), SUMMARY)
STUCK, BUSY = Obstacle("Stuck", "repair it"), Obstacle("Busy", "wait")


def conditions(scene: Scene) -> dict[str, tuple[bool, str, str]]:
    return {one.type: (one.holds, one.reason, one.message) for one in build_report(scene).verdicts}


def test_a_status_holds_what_the_kernel_has_beside_the_facts() -> None:
    report = build_report(SCENE)
    content = report.content
    assert (content.containers, content.pools, content.running) == ((ONE,), POOLS, ("u",))
    assert (content.drift_count, report.blind) == (3, False)


def test_a_report_without_a_readable_tree_is_blind() -> None:
    report = build_report(replace(SCENE, summary=None))
    assert (report.content.containers, report.blind) == ((), True)


def test_a_report_is_a_status_as_the_models_take_it() -> None:
    wire = build_report(SCENE).wire({}, "2030-01-01T00:00:00Z")
    assert {one["type"] for one in wire["conditions"]} == {"Ready", "Reconciling", "Stalled"}
    model = models.NodeAssignmentStatus.model_validate_json(json.dumps(wire), strict=True)
    assert model.to_wire() == wire


@pytest.mark.parametrize(
    ("scene", "fine"),
    [
        (replace(SCENE, spec=None), "there is nothing to enforce"),
        (
            replace(SCENE, spec=NodeAssignmentSpec(mode="None")),
            "every cgroup has what its parent has",
        ),
        (replace(SCENE, summary=Summary()), "0 containers with exclusive CPUs"),
        (SCENE, "1 container with exclusive CPUs"),
        (
            replace(SCENE, spec=NodeAssignmentSpec(release_at="2030-01-01T00:00:30Z")),
            "1 container with exclusive CPUs; no policy wants them any more: given back at "
            "2030-01-01T00:00:30Z",
        ),
        (replace(SCENE, summary=Summary((ONE, ONE))), "2 containers with exclusive CPUs"),
        (
            replace(SCENE, summary=Summary((replace(ONE, exclusive=False),))),
            "0 containers with exclusive CPUs",
        ),
    ],
)
def test_a_healthy_node_is_ready(scene: Scene, fine: str) -> None:
    assert conditions(scene) == {
        "Ready": (True, "Enforced", fine),
        "Reconciling": (False, "Settled", ""),
        "Stalled": (False, "NotStalled", ""),
    }


def test_the_first_obstacle_is_reported() -> None:
    other = Obstacle("Other", "later")
    assert conditions(replace(SCENE, stalled=(STUCK, other), working=(BUSY, other))) == {
        "Ready": (False, "Stuck", "repair it"),
        "Reconciling": (True, "Busy", "wait"),
        "Stalled": (True, "Stuck", "repair it"),
    }
    assert conditions(replace(SCENE, working=(BUSY,)))["Ready"] == (False, "Busy", "wait")


def test_outdated_containers_and_refused_pods_are_counted_and_leave_the_node_ready() -> None:
    names = {"podUID": "u", "namespace": "ns", "pod": "p", "container": "c", "cpus": "1"}
    refusal = {"podUID": "v", "namespace": "ns", "pod": "q", "reason": "r", "message": "m"}
    spec = decode_spec({"containers": [names | {"outdated": True}, names], "refused": [refusal]})
    scene = replace(SCENE, spec=spec)
    content, found = build_report(scene).content, conditions(scene)
    assert (content.outdated, content.refused) == (1, 1)
    assert found["Ready"][0]
    assert found["Reconciling"] == (
        True,
        "WaitingForContainers",
        "the policy would place 1 container otherwise, until they end: ns/p/c",
    )
    assert conditions(replace(scene, working=[BUSY]))["Reconciling"][1] == "Busy"
