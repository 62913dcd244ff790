"""What `numapin explain` says of recorded refusals: the planner's numbers, and advice that works.

Each piece of advice is followed on the objects of the cluster, and the operator decides again.
"""

import gzip
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.schema.plain_assignment import ContainerAssignment
from numapin_cli.advice.explanation import Explanation
from numapin_cli.advice.pods import explain_pod
from numapin_cli.advice.remedies.remedy import Remedy
from numapin_cli.advice.remedies.sizes import scaled, with_cpus, with_memory
from numapin_cli.as_operator import PlayedNode
from numapin_cli.inputs.described_cluster import unwritten_assignment
from numapin_cli.inputs.machines import Machines
from numapin_cli.inputs.scenario import Scenario, parse_scenario
from numapin_cli.what_if import followed
from numapin_client.resources import Key
from numapin_operator.nodes.decide import decide
from numapin_operator.nodes.picture import picture_of
from numapin_operator.observe.cache import ClusterState
from numapin_operator.placement import PodView
from numapin_operator.telemetry.table import REFUSALS

FOLDER = Path(__file__).parent
FILES = ("init", "memory", "options", "plain", "podlevel", "topology")
OTHER = "other"
"""A node like that of the scenario, without pods."""

TRIED = 5
"""How many of one kind are looked at until the operator, which has no quirks, refuses one too."""

NOT_RECORDED = {"EmptyPodSharedPoolError"}
"""No recorded scenario is refused so; tests/unit/cli/commands/test_explain.py has one."""

KINDS = {reason for (reason,) in REFUSALS.begins_with} - NOT_RECORDED
"""Every kind of refusal that the operator counts must be among those that are explained."""


class Refusal:
    """A pod that a step of a scenario refused, and the cluster then."""

    def __init__(self, scenario: Scenario, steps: int) -> None:
        self.scenario = scenario
        short = replace(scenario, steps=scenario.steps[: steps + 1])
        played = PlayedNode(short)
        played.decide()
        *_, self.answer = played.steps()
        self.node = played.name
        self.assignment = played.assignment
        self._pods = tuple(played.state.pods_on(played.name))
        added = scenario.steps[steps].add
        assert added is not None
        self.pod = next(pod for pod in self._pods if pod.uid == added.uid)

    def cluster(self, spec: CpuPolicySpec | None = None) -> ClusterState:
        """The cluster, with another spec of the policy if one is given."""
        played = PlayedNode(self.scenario)
        state = played.state
        if spec is not None:
            before = state.policies["policy"]
            state.put_policy_view(replace(before, spec=spec, generation=2, version=2))
        other = replace(self.scenario.node, name=OTHER, uid=OTHER)
        state.put_node(other)
        hardware = self.assignment.hardware
        state.put_assignment(unwritten_assignment(OTHER, hardware))
        state.put_assignment(replace(self.assignment, version=1))
        for pod in self._pods:
            state.put_pod(Key(pod.uid), pod)
        return state

    def explain(self) -> Explanation:
        return explain_pod(self.cluster(), self.pod, (OTHER,), None)


def refusals(name: str) -> Iterator[Refusal]:
    """A sample of the refusals of a file, every reason and machine among them."""
    machines = Machines(FOLDER / "machines")
    found: dict[tuple[str, str], list[tuple[dict[str, Any], int]]] = {}
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt") as lines:
        for scenario in map(json.loads, lines):
            for number, step in enumerate(scenario.get("expect") or ()):
                if step.get("admitted") is False:
                    key = (step["reason"], str(scenario["machine"]))
                    found.setdefault(key, []).append((scenario, number))
    chosen = random.Random(1)
    for key in sorted(found):
        for scenario, number in chosen.sample(found[key], min(TRIED, len(found[key]))):
            asked = {name: part for name, part in scenario.items() if "expect" not in name}
            refusal = Refusal(parse_scenario(json.dumps(asked), machines), number)
            if not refusal.answer["admitted"]:
                yield refusal
                break


@cache
def explained(name: str) -> list[tuple[Refusal, Explanation]]:
    return [(one, one.explain()) for one in refusals(name)]


@pytest.mark.parametrize("name", FILES)
def test_the_numbers_are_the_planner_s(name: str) -> None:
    for refusal, explanation in explained(name):
        assert explanation.reason == refusal.answer["reason"]
        assert refusal.answer["message"] in explanation.why
        assert not explanation.is_well
        assert not explanation.stopped


def test_every_kind_of_refusal_is_explained() -> None:
    seen = {each.reason for name in FILES for _, each in explained(name)}
    assert seen == KINDS


def test_every_kind_of_refusal_has_advice() -> None:
    """Each advice is followed below."""
    advised = {each.reason for name in FILES for _, each in explained(name) if each.remedies}
    assert advised == KINDS


@pytest.mark.parametrize("name", FILES)
def test_what_is_advised_makes_the_pod_fit(name: str) -> None:
    followed_kinds = Counter[str]()
    for refusal, explanation in explained(name):
        for remedy in explanation.remedies:
            got = follow(refusal, remedy)
            assert got == {one.container: str(one.cpus) for one in remedy.entries}, remedy.text
            if "moveTo" in remedy.change:
                assert moved(refusal, remedy) == needed(refusal, remedy), remedy.text
            followed_kinds[remedy.kind] += 1
    assert followed_kinds["size"] or followed_kinds["node"]
    assert sum(followed_kinds.values()) >= len(explained(name))


def follow(refusal: Refusal, remedy: Remedy) -> dict[str, str]:
    """Do what is advised; returns the CPUs of each container of the pod."""
    change, again = remedy.change, recreated(refusal.pod)
    if remedy.kind == "policy":
        state = refusal.cluster(merged(refusal.scenario.policy, change["spec"]))
        return cpus_of(state, refusal.node, refusal.pod.uid)
    state = refusal.cluster()
    state.drop_pod(Key(refusal.pod.uid), refusal.node)
    if remedy.kind == "release":
        ended = [pod for pod in state.pods_on(refusal.node) if full_name(pod) in change["pods"]]
        assert len(ended) == len(change["pods"])
        for pod in ended:
            state.drop_pod(Key(pod.uid), refusal.node)
        gone = {pod.uid for pod in ended}
        status = refusal.assignment.status
        running = tuple(uid for uid in status.running if uid not in gone)
        told = replace(status, running=running)
        state.put_assignment(replace(refusal.assignment, status=told, version=2))
    elif "percent" in change:
        again = scaled(again, change["percent"])
    elif remedy.kind == "size" and "cpus" in change:
        again = with_cpus(again, change["container"], change["cpus"])
    elif remedy.kind == "size":
        again = with_memory(again, change["container"], change["resource"], change["bytes"])
    node = change.get("node", refusal.node)
    if node != refusal.node:
        settle(state, node)
    state.put_pod(Key(again.uid), replace(again, node=node))
    return cpus_of(state, node, again.uid)


def needed(refusal: Refusal, remedy: Remedy) -> dict[str, int]:
    """How many CPUs of their own the containers have that are advised to be moved."""
    uids = {pod.uid for pod in movable(refusal, remedy)}
    return _counts(refusal.assignment.spec.containers, uids)


def moved(refusal: Refusal, remedy: Remedy) -> dict[str, int]:
    """How many they get where it is advised to create their pods again."""
    state, node = refusal.cluster(), remedy.change["moveTo"]
    settle(state, node)
    pods = [replace(recreated(pod), node=node) for pod in movable(refusal, remedy)]
    for pod in pods:
        state.put_pod(Key(pod.uid), pod)
    settle(state, node)
    return _counts(state.assignments[node].spec.containers, {pod.uid for pod in pods})


def movable(refusal: Refusal, remedy: Remedy) -> list[PodView]:
    pods = refusal.cluster().pods_on(refusal.node)
    return [pod for pod in pods if full_name(pod) in remedy.change["pods"]]


def _counts(entries: Iterable[ContainerAssignment], uids: set[str]) -> dict[str, int]:
    return {
        one.container: len(one.cpus) for one in entries if one.exclusive and one.pod_uid in uids
    }


def recreated(pod: PodView) -> PodView:
    return replace(pod, uid=f"{pod.uid}-again", bound="~~")


def full_name(pod: PodView) -> str:
    return f"{pod.namespace}/{pod.name}"


def merged(spec: CpuPolicySpec, patch: dict[str, Any]) -> CpuPolicySpec:
    wire = spec.to_wire()
    for key, value in patch.items():
        wire[key] = wire[key] | value if isinstance(value, dict) else value
    return CpuPolicySpec.model_validate(wire)


def settle(state: ClusterState, node: str) -> None:
    """Let the operator write once, and the enforcer report."""
    picture = picture_of(state, node)
    after = followed(picture, decide(picture))
    assert after is not None
    state.put_assignment(replace(after, version=after.version + 1))


def cpus_of(state: ClusterState, node: str, uid: str) -> dict[str, str]:
    settle(state, node)
    written = state.assignments[node].spec
    return {one.container: str(one.cpus) for one in written.containers if one.pod_uid == uid}
