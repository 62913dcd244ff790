"""What is remembered of pods that a plan leaves alone changes no plan, and is bounded."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import PodView, PolicyError, mark_outdated, plan_with, resolve
from numapin_operator.placement.policy.node_policy import NodePolicy
from numapin_operator.placement.resize import settled
from support.values.placement import NO_UIDS, machine, pod, policy
from support.values.situations import Situation, situations


def ended(one: PodView) -> PodView:
    """The pod after its first container has ended."""
    first, *others = one.containers
    return replace(one, containers=(replace(first, ended=True), *others))


def resized(one: PodView) -> PodView:
    """The pod after its kubelet has granted a CPU more to its first container."""
    first, *others = one.containers
    larger = replace(first, cpu_millis=first.cpu_millis + 1000, granted=True)
    return replace(one, edited=True, containers=(larger, *others))


CHANGES: dict[str, Callable[[PodView], PodView | None]] = {
    "nothing": lambda one: one,
    "gone": lambda _: None,
    "terminal": lambda one: replace(one, terminal=True),
    "deleting": lambda one: replace(one, deleting=True),
    "claims-unknown": lambda one: replace(one, claims_unknown=True),
    "edited": lambda one: replace(one, edited=True),
    "unselected": lambda one: replace(one, selected=False),
    "ended": ended,
    "resized": resized,
}
HAPPENS = st.sampled_from((*("nothing",) * 5, *CHANGES))


def written(
    policy: NodePolicy,
    previous: NodeAssignmentSpec | None,
    pods: Sequence[PodView],
    running: frozenset[str],
) -> tuple[str, NodeAssignmentSpec | None, object]:
    """The bytes of the next spec with its marks, the spec, and what is said of outdated pods."""
    try:
        plan = plan_with(policy, previous, pods, running)
    except PolicyError as error:
        return str(error), previous, ()
    spec, outdated = mark_outdated(policy, plan.spec, pods, edited=False, settled=plan.settled)
    return json.dumps(spec.to_wire()), spec, outdated


def without_offline(topology: Topology, offline: CpuSet) -> Topology:
    """The machine after CPUs went offline; as it is if none is left then."""
    left = tuple(one for one in topology.cpus if one.id not in offline)
    return replace(topology, cpus=left, offline=topology.offline | offline) if left else topology


@given(situations(), st.data())
@settings(max_examples=150, deadline=None)
def test_plans_are_the_same_as_without_it(situation: Situation, data: st.DataObject) -> None:
    topology, spec, objects = situation
    try:
        resolved = resolve(topology, spec)
    except PolicyError:
        return
    pods = [parse_pod(each) for each in objects]
    half, previous = len(pods) // 2, None
    for present in (pods[:half], pods, pods, pods):
        _, previous, _ = written(resolved, previous, present, NO_UIDS)
    for _ in range(3):
        after = [CHANGES[data.draw(HAPPENS)](one) for one in pods]
        pods = [one for one in after if one is not None]
        running = frozenset(one.uid for one in pods if data.draw(st.booleans()))
        if data.draw(st.integers(0, 3)) == 0:
            online = sorted(resolved.topology.online)
            lost = CpuSet(data.draw(st.lists(st.sampled_from(online), max_size=2)))
            try:
                resolved = resolve(without_offline(resolved.topology, lost), spec)
            except PolicyError:
                return
        with patch("numapin_operator.placement.staying.settled_pods", return_value={}):
            expected, _, said = written(resolved, previous, pods, running)
        found, previous, says = written(resolved, previous, pods, running)
        assert (found, says) == (expected, said)


def test_the_pods_that_stay_are_not_looked_at_again() -> None:
    pods = [pod(name, "2", "1") for name in "abc"]
    resolved = resolve(machine(16), policy())
    before = plan_with(resolved, None, pods, NO_UIDS).spec
    first = plan_with(resolved, before, pods, NO_UIDS).settled
    again = plan_with(resolved, before, pods, NO_UIDS).settled
    assert first.keys() == {one.uid for one in pods}
    assert all(again[uid] is one for uid, one in first.items())


def test_another_node_with_the_same_uid_finds_its_own() -> None:
    one, other = pod("a", "2", "1"), pod("a", "4", "1")
    resolved = resolve(machine(16), policy())
    before: Any = [plan_with(resolved, None, [each], NO_UIDS).spec for each in (one, other)]
    for _ in range(2):
        for spec, each in zip(before, (one, other), strict=True):
            found = plan_with(resolved, spec, [each], NO_UIDS)
            assert found.spec == spec
            assert found.settled["uid-a"].pod is each


def test_only_so_many_pods_are_remembered() -> None:
    resolved = resolve(machine(16), policy())
    with patch.object(settled, "REMEMBERED", 4):
        for number in range(9):
            pods = [pod(f"p{number}", "1", "1")]
            before = plan_with(resolved, None, pods, NO_UIDS).spec
            plan_with(resolved, before, pods, NO_UIDS)
        assert list(settled._KNOWN) == ["uid-p5", "uid-p6", "uid-p7", "uid-p8"]
