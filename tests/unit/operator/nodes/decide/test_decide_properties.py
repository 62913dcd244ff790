"""Properties for any pods: their order does not matter, deciding again changes nothing."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_operator.nodes.decide import Decision, Write, decide
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.placement import PodView
from support.values.operator import (
    EMPTY,
    PLANNED,
    REPORTED,
    assignment_view,
    enforcer_status,
    picture,
    pod_view,
)

PODS = st.lists(
    st.builds(
        pod_view,
        st.sampled_from([f"pod-{number}" for number in range(8)]),
        st.sampled_from(["1", "2", "4", "500m"]),
        bound=st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]),
    ),
    unique_by=lambda pod: pod.name,
    max_size=8,
)


def follow(assignment: AssignmentView, decision: Decision) -> AssignmentView:
    """The assignment after `decision` is written and the enforcer has reported."""
    if decision.spec is None:
        return assignment
    generation = assignment.generation + 1
    running = [one.pod_uid for one in decision.spec.containers]
    status = enforcer_status(generation, running=running)
    return assignment_view(decision.spec.to_wire(), status, generation=generation)


@settings(deadline=None)
@given(PODS, st.randoms(use_true_random=False))
def test_the_order_of_pods_never_matters(pods: list[PodView], random: Any) -> None:
    before = assignment_view(PLANNED, REPORTED)
    shuffled = list(pods)
    random.shuffle(shuffled)
    one, other = decide(picture(before, *pods)), decide(picture(before, *shuffled))
    assert one == other
    if one.spec is not None and other.spec is not None:
        assert json.dumps(one.spec.to_wire()) == json.dumps(other.spec.to_wire())


@settings(deadline=None)
@given(PODS, PODS)
def test_deciding_again_changes_nothing(first: list[PodView], then: list[PodView]) -> None:
    """A spec that was written is decided again unchanged, also by a new operator."""
    assignment = assignment_view(EMPTY, REPORTED)
    for pods in (first, then):
        assignment = follow(assignment, decide(picture(assignment, *pods)))
        assert decide(picture(assignment, *pods)).write is Write.NOTHING


@settings(deadline=None)
@given(PODS, PODS)
def test_running_containers_never_move(first: list[PodView], then: list[PodView]) -> None:
    before = follow(
        assignment_view(EMPTY, REPORTED),
        decide(picture(assignment_view(EMPTY, REPORTED), *first)),
    )
    after = follow(before, decide(picture(before, *then)))
    had = {one.pod_uid: one.cpus for one in before.spec.containers}
    has = {one.pod_uid: one.cpus for one in after.spec.containers}
    assert all(has.get(uid) == cpus for uid, cpus in had.items()), "all of them still run"
