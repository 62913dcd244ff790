"""Tables of pictures of a node, and what is decided for each."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_operator.nodes.decide import NodePicture, Write, decide
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.policies.status import Phase
from support.values.operator import (
    EMPTY,
    PLANNED,
    POLICY,
    REPORTED,
    assignment_view,
    condition,
    enforcer_status,
    flat_topology,
    node_view,
    picture,
    pod_body,
    pod_view,
    policy_view,
)

RELEASED = {"mode": "None"}


def held_by(pod: str, cpus: str, shared: str) -> dict[str, Any]:
    container = {
        "podUID": f"uid-{pod}",
        "namespace": "default",
        "pod": pod,
        "container": "main",
        "cpus": cpus,
        "exclusive": True,
    }
    pools = {"reserved": "0-1", "shared": shared}
    return EMPTY | {"pools": pools, "containers": [container]}


@pytest.mark.parametrize(
    ("before", "write"),
    [
        pytest.param(picture(None, node=None), Write.NOTHING, id="nothing-exists"),
        pytest.param(picture(None, policies=()), Write.NOTHING, id="no-policy-no-assignment"),
        pytest.param(picture(None), Write.CREATE, id="selected"),
        pytest.param(picture(assignment_view(PLANNED), node=None), Write.DELETE, id="node-deleted"),
        pytest.param(picture(assignment_view(EMPTY)), Write.NOTHING, id="waits-for-topology"),
        pytest.param(
            picture(assignment_view(EMPTY, REPORTED)), Write.REPLACE, id="topology-reported"
        ),
        pytest.param(
            picture(assignment_view(PLANNED, REPORTED)), Write.NOTHING, id="nothing-differs"
        ),
        pytest.param(
            picture(assignment_view(PLANNED, REPORTED), pod_view("a")),
            Write.REPLACE,
            id="pod-bound",
        ),
        pytest.param(
            picture(assignment_view(PLANNED, REPORTED, owner="another-node")),
            Write.REPLACE,
            id="node-was-registered-again",
        ),
        pytest.param(
            picture(assignment_view(PLANNED, REPORTED, deleting=True), pod_view("a")),
            Write.NOTHING,
            id="being-deleted",
        ),
    ],
)
def test_what_is_written(before: NodePicture, write: Write) -> None:
    assert decide(before).write is write


RELEASE_STEPS = [
    pytest.param(assignment_view(EMPTY), Write.DELETE, id="never-had-pools"),
    pytest.param(assignment_view(PLANNED), Write.REPLACE, id="no-report-yet"),
    pytest.param(assignment_view(PLANNED, REPORTED), Write.REPLACE, id="in-force"),
    pytest.param(
        assignment_view(RELEASED, REPORTED, generation=2), Write.NOTHING, id="not-observed-yet"
    ),
    pytest.param(
        assignment_view(
            RELEASED,
            enforcer_status(2, conditions=[condition("Ready", False, "Releasing")]),
            generation=2,
        ),
        Write.NOTHING,
        id="still-releasing",
    ),
    pytest.param(
        assignment_view(RELEASED, enforcer_status(2), generation=2), Write.DELETE, id="released"
    ),
    pytest.param(
        assignment_view(RELEASED, enforcer_status(2), generation=2, deleting=True),
        Write.NOTHING,
        id="already-being-deleted",
    ),
]


@pytest.mark.parametrize(("assignment", "write"), RELEASE_STEPS)
def test_without_a_policy_the_cgroups_are_released_first(
    assignment: AssignmentView, write: Write
) -> None:
    decision = decide(picture(assignment, pod_view("a"), policies=()))
    assert (decision.write, decision.outcome) == (write, None)
    if write is Write.REPLACE:
        assert decision.spec is not None
        assert decision.spec.mode == "None"
        assert (decision.spec.policy, decision.spec.pools) == (None, None)


def test_a_pod_gets_its_cpus() -> None:
    spec = decide(picture(assignment_view(PLANNED, REPORTED), pod_view("a"))).spec
    assert spec is not None
    assert spec.to_wire()["containers"] == [
        {
            "podUID": "uid-a",
            "namespace": "default",
            "pod": "a",
            "container": "main",
            "cpus": "2-3",
            "mems": "",
            "exclusive": True,
            "memory": [],
        }
    ]
    assert str(spec.pools.shared if spec.pools else "") == "0-1,4-7"


@pytest.mark.parametrize(
    ("pods", "running", "kept"),
    [
        pytest.param(("a",), ("uid-a",), True, id="exists-and-runs"),
        pytest.param(("a",), (), True, id="exists-and-has-not-started"),
        pytest.param((), ("uid-a",), True, id="force-deleted-and-still-runs"),
        pytest.param((), (), False, id="deleted-and-ended"),
    ],
)
def test_cpus_are_freed_when_the_pod_is_deleted_and_has_ended(
    pods: tuple[str, ...], running: tuple[str, ...], kept: bool
) -> None:
    status = enforcer_status(1, running=running)
    before = assignment_view(held_by("a", "2-3", "0-1,4-7"), status)
    decision = decide(picture(before, *(pod_view(name) for name in pods)))
    assert (decision.write is Write.NOTHING) is kept


def test_a_status_without_hardware_changes_nothing() -> None:
    before = assignment_view(held_by("a", "2-3", "0-1,4-7"))
    decision = decide(picture(before, pod_view("a"), pod_view("b")))
    assert decision.write is Write.NOTHING
    assert decision.outcome is not None
    assert decision.outcome.reason == "WaitingForTopology"


def test_by_default_the_cpus_that_are_not_allocatable_are_reserved() -> None:
    node = node_view(capacity=8000, allocatable=6500)
    spec = decide(
        picture(assignment_view(EMPTY, REPORTED), policies=(policy_view(),), node=node)
    ).spec
    assert spec is not None
    assert str(spec.pools.reserved if spec.pools else "") == "0-1"


def test_by_default_memory_that_is_not_allocatable_is_bound_to_no_container() -> None:
    """8 GiB on the machine, of which the Node keeps 2 GiB back: 7 GiB cannot be promised."""
    static = policy_view("policy", {"reserved": {"count": 2}, "memory": {"policy": "Static"}})
    before = assignment_view(EMPTY, REPORTED)
    node = node_view(kept_back={"memory": 2 << 30})
    spec = decide(picture(before, pod_view("a", memory="7Gi"), policies=(static,), node=node)).spec
    assert spec is not None
    assert [refusal.reason for refusal in spec.refused] == ["NotEnoughMemory"]
    assert "6 GiB memory" in (spec.refused[0].message or "")


@pytest.mark.parametrize(
    ("kept_back", "reason"),
    [(1 << 30, "InForce"), (2 << 30, "MemoryReservationDiffers")],
)
def test_reserved_memory_that_differs_from_the_node_s_is_told(kept_back: int, reason: str) -> None:
    memory = {"policy": "Static", "reserved": [{"numaNode": 0, "memory": "1Gi"}]}
    policies = (policy_view("policy", {"reserved": {"count": 2}, "memory": memory}),)
    node = node_view(kept_back={"memory": kept_back})
    outcome = decide(
        picture(assignment_view(PLANNED, REPORTED), policies=policies, node=node)
    ).outcome
    assert outcome is not None
    assert (outcome.phase, outcome.reason) == (Phase.IN_FORCE, reason)
    assert ("the Node keeps back 2Gi" in outcome.message) == (kept_back > 1 << 30)


def with_huge_pages(free: int) -> AssignmentView:
    """A machine of 8 huge pages of 1 GiB, of which so many are free, and a size nobody knows."""
    one = replace(flat_topology().numa_nodes[0], memory_bytes=16 << 30, hugepages={"1Gi": 8})
    topology = replace(flat_topology(), numa_nodes=(one,))
    pages = [{"numaNode": 0, "pages": {"1Gi": free, "large": 7}}]
    return assignment_view(EMPTY, enforcer_status(1, topology=topology, free_hugepages=pages))


@pytest.mark.parametrize(("free", "reason"), [(2, []), (1, ["NotEnoughMemory"])])
def test_huge_pages_that_the_kernel_does_not_have_free_are_not_promised(
    free: int, reason: list[str]
) -> None:
    static = policy_view("policy", {"reserved": {"count": 2}, "memory": {"policy": "Static"}})
    body = pod_body("a")
    for amounts in body["spec"]["containers"][0]["resources"].values():
        amounts["hugepages-1Gi"] = "2Gi"
    spec = decide(picture(with_huge_pages(free), parse_pod(body), policies=(static,))).spec
    assert spec is not None
    assert [refusal.reason for refusal in spec.refused] == reason


def test_mode_none_releases_the_cgroups_and_keeps_the_assignment() -> None:
    policy = policy_view("policy", {"mode": "None"}, generation=2)
    before = assignment_view(held_by("a", "2-3", "0-1,4-7"), REPORTED)
    spec = decide(picture(before, pod_view("a"), policies=(policy,))).spec
    assert spec is not None
    assert spec.to_wire() == {
        "policy": {"name": "policy", "generation": 2, "since": 2, "uid": "uid-policy"},
        "mode": "None",
        "cpuQuota": "Unlimited",
        "isolation": "Cpuset",
        "containers": [],
        "refused": [],
        "unassigned": [],
    }
    released = assignment_view(spec.to_wire(), enforcer_status(2), generation=2)
    decision = decide(picture(released, pod_view("a"), policies=(policy,)))
    assert decision.write is Write.NOTHING
    assert decision.outcome is not None
    assert decision.outcome.phase is Phase.IN_FORCE


def test_an_edit_waits_for_running_containers_on_reserved_cpus() -> None:
    policy = policy_view("policy", {"reserved": {"cpus": "0-3"}}, generation=2)
    before = assignment_view(held_by("a", "2-3", "0-1,4-7"), enforcer_status(1, running=["uid-a"]))
    marked = decide(picture(before, pod_view("a"), policies=(policy,))).spec
    assert marked is not None
    assert [(str(one.cpus), one.outdated) for one in marked.containers] == [("2-3", True)]
    before = assignment_view(marked.to_wire(), enforcer_status(2, running=["uid-a"]), generation=2)
    decision = decide(picture(before, pod_view("a"), policies=(policy,)))
    assert decision.write is Write.NOTHING, "nothing can be reserved yet"
    outcome = decision.outcome
    assert outcome is not None
    assert (outcome.phase, outcome.reason) == (Phase.UNDER_WAY, "WaitingForContainers")
    assert "default/a/main uses 2-3" in outcome.message
    gone = assignment_view(marked.to_wire(), enforcer_status(2), generation=2)
    ended = decide(picture(gone, policies=(policy,)))
    assert ended.spec is not None
    assert ended.spec.to_wire()["pools"] == {"reserved": "0-3", "shared": "0-7"}


def test_a_refusal_lasts_until_the_policy_is_edited() -> None:
    before = assignment_view(PLANNED, REPORTED)
    first = decide(picture(before, pod_view("a", "4"), pod_view("b", "4"))).spec
    assert first is not None
    assert [one.pod for one in first.refused] == ["b"]
    written = assignment_view(first.to_wire(), enforcer_status(2), generation=2)
    again = decide(picture(written, pod_view("b", "4")))
    assert again.spec is not None
    assert [one.pod for one in again.spec.refused] == ["b"], "it runs in the shared pool already"
    edited = replace(POLICY, generation=2)
    retried = decide(picture(written, pod_view("b", "4"), policies=(edited,))).spec
    assert retried is not None
    assert ([one.pod for one in retried.containers], retried.refused) == (["b"], ())


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        ({"cpuQuota": "Halved"}, "InvalidPolicy", "spec.cpuQuota"),
        ({"reserved": {"cpus": "0,64"}}, "ImpossibleOnNode", "reserved.cpus: this machine has no"),
        ({"reserved": {"count": 99}}, "ImpossibleOnNode", "reserved.count"),
    ],
)
def test_an_impossible_policy_stalls_and_changes_nothing(
    spec: dict[str, Any], reason: str, message: str
) -> None:
    policy = policy_view("policy", spec, generation=2)
    before = assignment_view(held_by("a", "2-3", "0-1,4-7"), REPORTED)
    decision = decide(picture(before, pod_view("b"), policies=(policy,)))
    assert decision.write is Write.NOTHING
    assert decision.outcome is not None
    assert (decision.outcome.phase, decision.outcome.reason) == (Phase.STALLED, reason)
    assert message in decision.outcome.message


def test_an_invalid_assignment_stalls() -> None:
    before = assignment_view(EMPTY | {"pools": {"reserved": "9-1", "shared": "0"}}, REPORTED)
    decision = decide(picture(before))
    assert decision.write is Write.NOTHING
    assert decision.outcome is not None
    assert decision.outcome.reason == "InvalidAssignment"
    assert "runs backwards" in decision.outcome.message
