"""A pod that passed no scheduler takes no CPUs from others before the kubelet has accepted it."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_operator.observe.pods.parser import parse_stored_pod
from numapin_operator.placement import Allocatable, Plan, PodView, plan_with, resolve
from support.values.operator import pod_body
from support.values.placement import NO_UIDS, machine, policy

ALLOCATABLE = Allocatable(cpu_millis=4000, memory_bytes=1 << 30, pods=3)
SCHEDULED = {"conditions": [{"type": "PodScheduled", "status": "True"}]}


def by_hand(
    name: str, cpu: str, status: Mapping[str, object] | None = None, *, memory: str = "64Mi"
) -> PodView:
    """A pod as the API server stores it when it is created with a node."""
    body = pod_body(name, cpu, memory=memory)
    return parse_stored_pod(body | {"status": {"phase": "Pending", **(status or {})}})


def plan(*pods: PodView, previous: NodeAssignmentSpec | None = None) -> Plan:
    resolved = resolve(machine(16), policy(reserved={"count": 1}))
    return plan_with(replace(resolved, allocatable=ALLOCATABLE), previous, pods, NO_UIDS)


def placed(made: Plan) -> set[str]:
    return {entry.pod for entry in made.spec.containers}


@pytest.mark.parametrize(
    "status", [SCHEDULED, {"startTime": "2026-01-01T00:00:00Z"}, {"phase": "Running"}]
)
def test_a_pod_that_scheduler_or_kubelet_has_checked_is_placed(status: dict[str, object]) -> None:
    made = plan(by_hand("small", "1", SCHEDULED), by_hand("large", "5", status))
    assert placed(made) == {"small", "large"}
    assert made.waiting == ()


def test_a_static_pod_was_accepted_before_its_mirror_pod_was_created() -> None:
    body = pod_body("static", "5") | {"status": {"phase": "Pending"}}
    body["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "a" * 32}
    assert parse_stored_pod(body).checked


def test_a_pod_that_is_planned_from_a_file_is_placed() -> None:
    assert placed(plan(parse_stored_pod(pod_body("large", "5")))) == {"large"}


@pytest.mark.parametrize(
    ("cpu", "memory", "others"),
    [("4", "64Mi", 1), ("2", "2Gi", 1), ("2", "64Mi", 3)],
    ids=["cpu", "memory", "pods"],
)
def test_a_pod_without_room_waits_for_its_kubelet(cpu: str, memory: str, others: int) -> None:
    there = [by_hand(f"there-{n}", "500m", SCHEDULED) for n in range(others)]
    made = plan(by_hand("wants", cpu, memory=memory), *there)
    assert placed(made) == set()
    (held,) = made.waiting
    assert held.pod.name == "wants"
    assert not made.spec.refused
    room = plan(by_hand("wants", "2"), *there[:2])
    assert (placed(room), room.waiting) == ({"wants"}, ())


def test_of_several_only_those_wait_that_do_not_fit_and_others_may_use_the_cpus() -> None:
    pods = [by_hand("first", "3"), by_hand("second", "2"), by_hand("third", "1")]
    made = plan(*pods)
    assert placed(made) == {"first", "third"}
    assert [one.pod.name for one in made.waiting] == ["second"]


def test_what_a_pod_was_given_stays_when_the_node_offers_less_than_before() -> None:
    first = plan(by_hand("first", "3"))
    pods = [by_hand("first", "3"), by_hand("large", "9", SCHEDULED)]
    assert placed(plan(*pods, previous=first.spec)) == {"first", "large"}


def test_ended_pods_take_no_room() -> None:
    ended = replace(by_hand("ended", "4", SCHEDULED), terminal=True)
    assert placed(plan(ended, by_hand("next", "4"))) == {"next"}
