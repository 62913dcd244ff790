"""CPUs that the DRA driver dra.cpu has given away: no pool has them, and its containers are its."""

from typing import Any

import pytest

from numapin_operator.nodes.decide import Decision, Write, decide
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.pods.claims import ClaimView, with_claims
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import PodView
from support.values.operator import (
    EMPTY,
    PLANNED,
    assignment_view,
    condition,
    cpu_claiming_body,
    enforcer_status,
    picture,
    pod_body,
    pod_view,
    policy_view,
)


def claiming(name: str, claim: str = "c", **others: Any) -> PodView:
    """A pod whose container has a claim that dra.cpu serves; the claim's UID is uid-CLAIM."""
    view = ClaimView(f"uid-{claim}", frozenset({"cpus"}))
    return with_claims(parse_pod(cpu_claiming_body(name, claim, **others)), {claim: view})


def node(before: Any = EMPTY, generation: int = 1, **claims: str) -> AssignmentView:
    """An assignment whose enforcer reports the CPUs of claims by their names."""
    listed = [{"claimUID": f"uid-{name}", "cpus": cpus} for name, cpus in claims.items()]
    return assignment_view(before, enforcer_status(1) | {"claims": listed}, generation=generation)


def entry(pod: str, cpus: str, **more: Any) -> dict[str, Any]:
    names = {"podUID": f"uid-{pod}", "namespace": "default", "pod": pod, "container": "main"}
    return names | {"cpus": cpus, "exclusive": True} | more


def given(decision: Decision) -> dict[str, str]:
    assert decision.spec is not None
    listed = decision.spec.containers
    return {f"{one.pod}{'!' if one.claimed else ''}": str(one.cpus) for one in listed}


def shared(decision: Decision) -> str:
    assert decision.spec is not None
    assert decision.spec.pools is not None
    return str(decision.spec.pools.shared)


def test_claimed_cpus_leave_the_pool_and_are_given_to_nobody_else() -> None:
    made = decide(picture(node(c="2-3"), claiming("a"), pod_view("b")))
    assert (given(made), shared(made)) == ({"a!": "2-3", "b": "4-5"}, "0-1,6-7")


def test_a_claim_without_a_pod_on_the_node_takes_nothing() -> None:
    made = decide(picture(node(c="2-3"), pod_view("b")))
    assert given(made) == {"b": "2-3"}


def test_a_claimed_container_gets_nothing_before_its_cpus_are_known() -> None:
    made = decide(picture(node(), claiming("a"), pod_view("b")))
    assert given(made) == {"b": "2-3"}


def test_reserved_cpus_can_be_claimed_too() -> None:
    made = decide(picture(node(c="1-2"), claiming("a")))
    assert (given(made), shared(made)) == ({"a!": "1-2"}, "0,3-7")
    assert made.spec is not None
    assert made.spec.pools is not None
    assert str(made.spec.pools.reserved) == "0"


def test_what_a_container_has_stays_with_it_although_it_is_claimed() -> None:
    before = node(PLANNED | {"containers": [entry("b", "2-3")]}, c="3-4", d="2")
    made = decide(picture(before, claiming("a"), claiming("x", "d"), pod_view("b")))
    assert given(made) == {"b": "2-3", "a!": "4"}


def test_claims_never_take_the_last_shared_cpu() -> None:
    made = decide(picture(node(c="0-7"), claiming("a")))
    assert (given(made), shared(made)) == ({}, "0-7")
    held = node(PLANNED | {"containers": [entry("b", "2-6")]}, c="0-1,7")
    assert given(decide(picture(held, claiming("a"), pod_view("b", "5")))) == {"b": "2-6"}


def test_other_containers_of_the_pod_are_pinned_as_usual() -> None:
    body = cpu_claiming_body("a")
    more = pod_body("a")["spec"]["containers"][0] | {"name": "worker"}
    body["spec"]["containers"].append(more)
    view = with_claims(parse_pod(body), {"c": ClaimView("uid-c", frozenset({"cpus"}))})
    made = decide(picture(node(c="2-3"), view))
    assert made.spec is not None
    listed = {one.container: (str(one.cpus), one.claimed) for one in made.spec.containers}
    assert listed == {"main": ("2-3", True), "worker": ("4-5", None)}
    again = decide(picture(node(made.spec.to_wire(), c="2-3"), view))
    assert again.write is Write.NOTHING


def test_pods_with_resources_of_their_own_are_left_to_the_driver() -> None:
    body = cpu_claiming_body("a")
    amount = {"cpu": "4", "memory": "64Mi"}
    body["spec"]["resources"] = {"requests": amount, "limits": amount}
    view = with_claims(parse_pod(body), {"c": ClaimView("uid-c", frozenset({"cpus"}))})
    made = decide(picture(node(c="2-3"), view))
    assert made.spec is not None
    assert (given(made), made.spec.refused) == ({"a!": "2-3"}, ())


def test_the_next_plan_changes_nothing_and_the_last_returns_the_cpus() -> None:
    pods = (claiming("a"), pod_view("b"))
    first = decide(picture(node(c="2-3"), *pods))
    assert first.spec is not None
    written = first.spec.to_wire()
    assert decide(picture(node(written, c="2-3"), *pods)).write is Write.NOTHING
    moved = decide(picture(node(written, c="6-7"), *pods))
    assert given(moved) == {"a!": "6-7", "b": "4-5"}, "the driver decides"
    gone = decide(picture(node(written, c="2-3"), pods[1]))
    assert (given(gone), shared(gone)) == ({"b": "4-5"}, "0-3,6-7")


def test_what_is_known_stays_while_the_claim_cannot_be_read() -> None:
    unread = with_claims(parse_pod(cpu_claiming_body("a")), {})
    before = node(PLANNED | {"containers": [entry("a", "2-3", claimed=True)]}, c="2-3")
    made = decide(picture(before, unread, pod_view("b")))
    assert given(made) == {"a!": "2-3", "b": "4-5"}
    new = decide(picture(node(c="2-3"), unread, pod_view("b")))
    assert given(new) == {"b": "2-3"}, "the pod waits, and nobody waits for it"


def test_a_container_keeps_its_cpus_while_its_claim_is_not_reported() -> None:
    pods = (claiming("a"), claiming("x", "d"), pod_view("b"))
    first = decide(picture(node(c="2-3", d="6"), *pods))
    assert first.spec is not None
    written = first.spec.to_wire()
    assert decide(picture(node(written, d="6"), *pods)).write is Write.NOTHING
    gone = decide(picture(node(written), pods[2]))
    assert given(gone) == {"b": "4-5"}
    taken = decide(picture(node(written, d="2"), *pods))
    assert given(taken) == {"a!": "2-3", "b": "4-5"}, "the first of two keeps them"


def test_no_edit_of_the_policy_makes_a_claim_outdated() -> None:
    strict = policy_view(
        "policy", {"reserved": {"cpus": "2"}, "options": {"fullPCPUsOnly": True}}, generation=2
    )
    before = node(PLANNED | {"containers": [entry("a", "3-4", claimed=True)]}, c="3-4")
    made = decide(picture(before, claiming("a"), policies=(strict,)))
    assert made.spec is not None
    assert [(one.claimed, one.outdated) for one in made.spec.containers] == [(True, None)]


@pytest.mark.parametrize("scope", ["Container", "Pod"])
def test_a_pod_of_which_all_is_claimed_is_judged_under_no_policy(scope: str) -> None:
    body = cpu_claiming_body("a")
    amount = {"cpu": "4", "memory": "64Mi"}
    body["spec"]["resources"] = {"requests": amount, "limits": amount}
    whole = with_claims(parse_pod(body), {"c": ClaimView("uid-c", frozenset({"cpus"}))})
    edited = policy_view("policy", {"topology": {"scope": scope}}, generation=2)
    for pod in (claiming("a"), whole):
        made = decide(picture(node(c="2-3"), pod, pod_view("b"), policies=(edited,)))
        assert given(made) == {"a!": "2-3"} | {"b": "4-5"}


def test_containers_that_are_placed_after_a_claim_are_listed_with_their_pod() -> None:
    body = cpu_claiming_body("a", bound="1")
    more = pod_body("a")["spec"]["containers"][0] | {"name": "worker"}
    body["spec"]["containers"].append(more)
    view = with_claims(parse_pod(body), {"c": ClaimView("uid-c", frozenset({"cpus"}))})
    pods = (view, claiming("x", "d", bound="2"))
    made = decide(picture(node(c="2-3", d="6"), *pods))
    assert made.spec is not None
    assert [one.container for one in made.spec.containers] == ["worker", "main", "main"]
    again = decide(picture(node(made.spec.to_wire(), c="2-3", d="6"), *pods))
    assert again.write is Write.NOTHING


def test_a_policy_that_returns_adopts_no_claim_as_its_own() -> None:
    ready = [condition("Ready")]
    status = enforcer_status(1, conditions=ready, running=["uid-a", "uid-b"]) | {
        "claims": [{"claimUID": "uid-c", "cpus": "6-7"}],
        "containers": [
            {"podUID": "uid-a", "container": "main", "cpus": "6-7", "exclusive": True},
            {"podUID": "uid-b", "container": "main", "cpus": "3,5", "exclusive": True},
        ],
    }
    before = assignment_view({"mode": "None"}, status)
    made = decide(picture(before, claiming("a"), pod_view("b")))
    assert given(made) == {"b": "3,5", "a!": "6-7"}
