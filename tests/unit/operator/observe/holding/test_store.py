"""Which node has a place for a pod that waits."""

from dataclasses import replace

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import ContainerAssignment, NodeAssignmentSpec
from numapin_operator.observe.holding.held_pod import HeldPod
from numapin_operator.observe.holding.store import HeldPods
from support.values.held_pods import held_view


def lines(*pods: HeldPod) -> NodeAssignmentSpec:
    return NodeAssignmentSpec(
        containers=tuple(
            ContainerAssignment(
                pod_uid=one.uid,
                namespace="default",
                pod=one.pod.name,
                container="main",
                cpus=CpuSet([2, 3]),
                exclusive=True,
            )
            for one in pods
        )
    )


@pytest.fixture
def pod() -> HeldPod:
    return held_view("a")


@pytest.fixture
def held(pod: HeldPod) -> HeldPods:
    made = HeldPods()
    made.put(pod)
    return made


def placed(held: HeldPods, node: str, pod: HeldPod) -> bool:
    return pod.uid in held.with_place(node, lines(pod).containers)


def test_a_wish_becomes_a_place_when_the_lines_are_there(held: HeldPods, pod: HeldPod) -> None:
    held.wish(pod.uid, "n1")
    assert held.wishes_for("n1") == [pod]
    assert held.reserved(pod.uid) is None
    held.note_lines("n1", lines(pod))
    assert held.wishes_for("n1") == []
    assert held.reserved(pod.uid) == "n1"
    assert placed(held, "n1", pod)


def test_lines_on_a_second_node_are_no_place(held: HeldPods, pod: HeldPod) -> None:
    held.note_lines("n1", lines(pod))
    held.note_lines("n2", lines(pod))
    assert held.reserved(pod.uid) == "n1"
    assert not placed(held, "n2", pod)


def test_an_opened_pod_has_its_place_where_it_was_opened_for(held: HeldPods, pod: HeldPod) -> None:
    held.note_lines("n1", lines(pod))
    opened = replace(pod, is_gated=False, pinned="n2")
    held.put(opened)
    assert placed(held, "n2", opened)
    assert not placed(held, "n1", opened)


def test_a_place_that_is_given_up_is_no_place(held: HeldPods, pod: HeldPod) -> None:
    held.note_lines("n1", lines(pod))
    assert held.give_up(pod.uid) == "n1"
    assert held.reserved(pod.uid) is None
    held.put(replace(pod, is_gated=False, pinned="n1"))
    held.note_lines("n1", lines(pod))
    assert held.give_up(pod.uid) == "n1"
    assert not placed(held, "n1", pod)
    held.note_lines("n1", lines(pod))
    assert held.reserved(pod.uid) is None, "it waits no longer for that node"


def test_lines_that_go_end_the_place(held: HeldPods, pod: HeldPod) -> None:
    held.note_lines("n1", lines(pod))
    held.note_lines("n2", lines())
    assert held.reserved(pod.uid) == "n1"
    held.note_lines("n1", None)
    assert held.reserved(pod.uid) is None


def test_a_pod_that_goes_says_which_node_had_its_place(held: HeldPods, pod: HeldPod) -> None:
    assert held.drop("other") is None
    held.note_lines("n1", lines(pod))
    assert held.drop(pod.uid) == "n1"
    held.wish(pod.uid, "n1")
    assert held.wishes_for("n1") == []


def test_wishes_come_in_their_order(held: HeldPods, pod: HeldPod) -> None:
    older = held_view("z", bound="2025-01-01T00:00:00Z")
    held.put(older)
    held.wish(pod.uid, "n1")
    held.wish(older.uid, "n1")
    assert held.wishes_for("n1") == [older, pod]
