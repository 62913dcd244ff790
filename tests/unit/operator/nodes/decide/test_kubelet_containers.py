"""A node whose kubelet pins containers itself: the spec gives them what they have already."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_operator.nodes.decide import Decision, Write, decide
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import PodView
from support.values.operator import (
    EMPTY,
    PLANNED,
    assignment_view,
    condition,
    enforcer_status,
    picture,
    pod_body,
    pod_view,
    policy_view,
)
from support.values.placement import GIB, machine, resources

A, B = pod_view("a"), pod_view("b")
STALLED = [condition("Stalled", reason="KubeletStaticPolicy")]


def has(pod: str, cpus: str, container: str = "main", **more: Any) -> dict[str, Any]:
    return {"podUID": f"uid-{pod}", "container": container, "cpus": cpus} | more


def node(*pinned: dict[str, Any], spec: Any = EMPTY, **status: Any) -> AssignmentView:
    reported = enforcer_status(1, conditions=STALLED, **status)
    return assignment_view(spec, reported | {"kubeletContainers": list(pinned)})


def entry(pod: str, cpus: str) -> dict[str, Any]:
    names = {"namespace": "default", "pod": pod, "exclusive": True}
    return has(pod, cpus) | names


def given(decision: Decision) -> dict[str, str]:
    assert decision.spec is not None
    return {f"{one.pod} {one.container}": str(one.cpus) for one in decision.spec.containers}


def why(decision: Decision) -> list[str]:
    assert decision.spec is not None
    return [f"{one.pod} {one.container}" for one in decision.spec.containers if one.outdated]


def test_containers_keep_what_the_kubelet_gave_them_and_others_get_the_rest() -> None:
    made = decide(picture(node(has("b", "6-7"), has("a", "3,5")), A, B, pod_view("c", bound="9")))
    assert given(made) == {"a main": "3,5", "b main": "6-7", "c main": "2,4"}
    assert why(made) == []


def test_they_are_listed_in_the_same_order_whatever_order_the_pods_are_observed_in() -> None:
    """A new operator lists them in another order than one that has watched them."""
    before = node(has("a", "3,5"), has("b", "6-7"))
    released = assignment_view(
        {"mode": "None"},
        enforcer_status(1)
        | {"containers": [has("a", "3,5", exclusive=True), has("b", "6-7", exclusive=True)]},
    )
    for one in (before, released):
        assert decide(picture(one, B, A)) == decide(picture(one, A, B))
        assert list(given(decide(picture(one, B, A)))) == ["a main", "b main"]


def test_a_claim_beside_them_tries_no_refused_pod_again() -> None:
    refusal = {"namespace": "default", "pod": "b", "podUID": "uid-b", "reason": "NotEnoughCPUs"}
    claim = {"podUID": "uid-a", "container": "gpu", "namespace": "default", "pod": "a"}
    spec = PLANNED | {
        "containers": [
            entry("a", "3,5"),
            claim | {"cpus": "4", "exclusive": True, "claimed": True},
        ],
        "refused": [refusal | {"message": "it ran out"}],
    }
    body = pod_body("a")
    more = body["spec"]["containers"][0] | {"name": "gpu"}
    body["spec"]["containers"].append(more)
    view = parse_pod(body)
    gpu = replace(view.containers[1], cpu_claims=("c",))
    a = replace(view, containers=(view.containers[0], gpu))
    status = enforcer_status(1, conditions=STALLED) | {
        "kubeletContainers": [has("a", "3,5")],
        "claims": [{"claimUID": "c", "cpus": "4"}],
    }
    made = decide(picture(assignment_view(spec, status), a, B))
    assert made.spec is not None
    assert [one.pod for one in made.spec.refused] == ["b"]
    assert given(made) == {"a main": "3,5", "a gpu": "4"}


def test_the_reserved_and_the_shared_cpus_are_those_that_are_left() -> None:
    made = decide(picture(node(has("a", "0,6")), A))
    assert made.spec is not None
    assert made.spec.pools is not None
    assert (str(made.spec.pools.reserved), str(made.spec.pools.shared)) == ("1", "1-5,7")
    assert why(made) == ["a main"], "it has a reserved CPU, and keeps it until it ends"


def test_parts_of_cores_are_outdated_where_the_policy_gives_whole_cores() -> None:
    full = policy_view("policy", {"reserved": {"count": 2}, "options": {"fullPCPUsOnly": True}})
    before = node(has("a", "3,5"), has("b", "6-7"), topology=machine(8))
    made = decide(picture(before, A, B, policies=(full,)))
    assert given(made) == {"a main": "3,5", "b main": "6-7"}
    assert why(made) == ["a main"]


def test_a_pod_that_the_policy_does_not_select_keeps_its_cpus_until_it_ends() -> None:
    burstable = policy_view("policy", {"pods": {"qosClasses": ["Burstable"]}})
    made = decide(picture(node(has("a", "4-5")), A, policies=(burstable,)))
    assert (given(made), why(made)) == ({"a main": "4-5"}, ["a main"])


@pytest.mark.parametrize(
    "pinned",
    [
        pytest.param([has("a", "4-6")], id="another-number-than-it-requests"),
        pytest.param([has("x", "4-5")], id="an-unknown-pod"),
        pytest.param([has("a", "4-5", "x")], id="an-unknown-container"),
        pytest.param([has("a", "64-65")], id="cpus-that-do-not-exist"),
    ],
)
def test_what_cannot_be_kept_is_planned_as_new(pinned: list[Any]) -> None:
    assert given(decide(picture(node(*pinned), A))) == {"a main": "2-3"}


def test_what_the_kubelet_gives_replaces_what_was_planned_before() -> None:
    """Nothing of the plan was in force: the kubelet has placed a new pod since."""
    planned = PLANNED | {"containers": [entry("b", "2-3"), entry("a", "4-5")]}
    made = decide(picture(node(has("a", "2-3"), spec=planned), A, B))
    assert given(made) == {"a main": "2-3", "b main": "4-5"}


def test_refused_pods_that_the_kubelet_has_placed_are_refused_no_more() -> None:
    refusal = {"podUID": "uid-a", "namespace": "default", "pod": "a"}
    refused = [refusal | {"reason": "NotEnoughCPUs", "message": "m"}]
    made = decide(picture(node(has("a", "4-5"), spec=PLANNED | {"refused": refused}), A))
    assert made.spec is not None
    assert (given(made), made.spec.refused) == ({"a main": "4-5"}, ())


def test_deciding_again_changes_nothing_neither_before_nor_after_the_kubelet_stops_pinning() -> (
    None
):
    pinned, reserved = (has("a", "0,6"), has("b", "3,7")), pod_view("c")
    first = decide(picture(node(*pinned), A, B, reserved))
    assert first.spec is not None
    written = first.spec.to_wire()
    for status in ({"kubeletContainers": list(pinned)}, {}):
        reported = enforcer_status(2, conditions=STALLED) | status
        after = assignment_view(written, reported, generation=2)
        assert decide(picture(after, A, B, reserved)).write is Write.NOTHING


def body(*containers: tuple[str, str], first: str = "", ended: bool = False) -> PodView:
    made = pod_body("a")
    made["spec"]["containers"] = [
        {"name": name, "resources": resources(cpu, "64Mi")} for name, cpu in containers
    ]
    if first:
        made["spec"]["initContainers"] = [{"name": "first", "resources": resources(first, "64Mi")}]
        state = {"terminated": {"exitCode": 0}} if ended else {"running": {}}
        made["status"] = {"initContainerStatuses": [{"name": "first", "state": state}]}
    return parse_pod(made)


@pytest.mark.parametrize(
    ("pod", "pinned", "kept"),
    [
        pytest.param(
            body(("main", "2"), ("beside", "1"), ("shared", "500m")),
            {"main": "3,5", "beside": "7"},
            {"main": "3,5", "beside": "7"},
            id="shared-container-beside",
        ),
        pytest.param(
            body(("main", "2"), first="3", ended=True),
            {"first": "3,5,7", "main": "5,7"},
            {"main": "5,7"},
            id="init-container-has-ended",
        ),
        pytest.param(
            body(("main", "2"), first="3"),
            {"first": "3,5,7", "main": "5,7"},
            {"first": "3,5,7", "main": "5,7"},
            id="init-container-runs",
        ),
        pytest.param(
            body(("main", "2"), ("beside", "2")),
            {"main": "3,5", "beside": "5,7"},
            {"main": "2-3", "beside": "4-5"},
            id="two-share-a-cpu",
        ),
    ],
)
def test_pods_of_several_containers(
    pod: PodView, pinned: dict[str, str], kept: dict[str, str]
) -> None:
    found = [has("a", cpus, name) for name, cpus in pinned.items()]
    exclusive = {
        key.removeprefix("a "): one
        for key, one in given(decide(picture(node(*found), pod))).items()
        if one
    }
    assert exclusive == kept


@pytest.mark.parametrize(
    ("mems", "memory", "bound"),
    [
        ("1", "Static", "1"),
        ("1", "None", ""),
        ("0-1", "Static", "0-1"),
        ("", "Static", ""),
        ("7", "Static", ""),
    ],
)
def test_memory_is_bound_where_the_kubelet_has_bound_it(mems: str, memory: str, bound: str) -> None:
    topology = machine(8, numa_nodes=2, memory_bytes=8 * GIB)
    policy = policy_view("policy", {"reserved": {"count": 1}, "memory": {"policy": memory}})
    pod = pod_view("a", memory="6Gi")
    before = node(has("a", "4-5", mems=mems), topology=topology)
    made = decide(picture(before, pod, policies=(policy,)))
    assert made.spec is not None
    (one,) = made.spec.containers
    assert (str(one.cpus), str(one.mems), len(one.memory)) == ("4-5", bound, bool(bound))
    assert bool(one.outdated) == (memory == "Static" and not bound)


@pytest.mark.parametrize(("observed", "write"), [(1, Write.NOTHING), (2, Write.DELETE)])
def test_without_a_policy_the_assignment_is_deleted_once_the_enforcer_has_seen_it(
    observed: int, write: Write
) -> None:
    reported = enforcer_status(observed, conditions=[condition("Ready", False), *STALLED])
    released = assignment_view({"mode": "None"}, reported, generation=2)
    assert decide(picture(released, A, policies=())).write is write
