"""Whatever an enforcer reports of containers, claims and memory, plans hold.

No report ends the planning of a node, the order of pods does not matter, the enforcer accepts the
spec, and the next plan changes nothing.
"""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_enforcer.assignment.decode import decode_spec
from numapin_enforcer.assignment.validation import find_problems
from numapin_operator.nodes.decide import Write, decide
from numapin_operator.observe.pods.claims import ClaimView, with_claims
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.observe.records import PolicyView
from numapin_operator.placement import PodView
from support.values.operator import (
    EMPTY,
    Body,
    assignment_view,
    enforcer_status,
    picture,
    pod_body,
    policy_view,
)
from support.values.placement import GIB, machine, resources

MACHINE = machine(16, numa_nodes=2, memory_bytes=4 * GIB)
CPUS = st.sets(st.integers(0, 15), min_size=1, max_size=3).map(
    lambda cpus: ",".join(map(str, sorted(cpus)))
)
SPECS: Any = st.fixed_dictionaries(
    {
        "reserved": st.sampled_from([{"count": 1}, {"count": 2, "strict": True}, {"cpus": "0,8"}]),
        "options": st.sampled_from([{}, {"fullPCPUsOnly": True}]),
        "topology": st.sampled_from(
            [{}, {"policy": "SingleNUMANode"}, {"policy": "BestEffort", "scope": "Pod"}]
        ),
        "memory": st.sampled_from([{}, {"policy": "Static"}, {"policy": "Preferred"}]),
    }
)


@st.composite
def pods(draw: st.DrawFn) -> list[PodView]:
    """Guaranteed pods; some of their containers have claims, served by dra.cpu or not."""
    made = []
    for number in range(draw(st.integers(1, 5))):
        body, claims = pod_body(f"p{number}", bound=draw(st.sampled_from("12"))), {}
        spec = body["spec"] | {"containers": [], "resourceClaims": []}
        for index in range(draw(st.integers(1, 3))):
            amount = resources(
                draw(st.sampled_from(["1", "2", "500m"])), draw(st.sampled_from(["64Mi", "3Gi"]))
            )
            if draw(st.booleans()):
                claim = f"c{number}{index}"
                spec["resourceClaims"].append({"name": claim, "resourceClaimName": claim})
                amount["claims"] = [{"name": claim}]
                served = draw(st.sampled_from([frozenset({"cpus"}), frozenset()]))
                claims[claim] = ClaimView(claim, served)
            spec["containers"].append({"name": f"c{index}", "resources": amount})
        if draw(st.integers(0, 4)) == 0:
            spec["resources"] = resources("4", "1Gi")
        made.append(with_claims(parse_pod(body | {"spec": spec}), claims))
    return made


@st.composite
def reports(draw: st.DrawFn, pods: list[PodView]) -> Body:
    """The parts of a status that enforcers have added; any of them may be untrue."""
    containers = [(pod.uid, one) for pod in pods for one in pod.containers]
    kubelet = [
        {
            "podUID": uid,
            "container": one.name,
            "cpus": draw(CPUS),
            "mems": draw(st.sampled_from("01")),
        }
        for uid, one in containers
        if draw(st.integers(0, 9)) == 0
    ]
    read_back = [
        {"podUID": uid, "container": one.name, "cpus": draw(CPUS), "exclusive": draw(st.booleans())}
        for uid, one in containers
        if draw(st.booleans())
    ]
    return {
        "kubeletContainers": kubelet,
        "containers": read_back,
        "claims": [
            {"claimUID": uid, "cpus": draw(CPUS)}
            for _, one in containers
            for uid in one.cpu_claims
            if draw(st.booleans())
        ],
        "unboundMemory": [
            {"podUID": pod.uid, "bytes": {"0": draw(st.sampled_from([0, GIB, 9 * GIB])), "1": GIB}}
            for pod in pods
            if draw(st.booleans())
        ],
    }


def status(generation: int, pods: list[PodView], report: Body) -> Body:
    told = enforcer_status(generation, topology=MACHINE, running=[pod.uid for pod in pods])
    return told | report


@settings(deadline=None, max_examples=200)
@given(st.data(), SPECS, SPECS, st.randoms(use_true_random=False))
def test_any_report_leads_to_a_spec_that_lasts(
    data: st.DataObject, first: Body, edited: Body, random: Any
) -> None:
    alive, spec, generation = data.draw(pods()), EMPTY, 1
    for policy in (policy_view("policy", first), edited_view(edited)):
        report = data.draw(reports(alive))
        before = assignment_view(spec, status(generation, alive, report), generation=generation)
        shuffled = random.sample(alive, len(alive))
        made = decide(picture(before, *alive, policies=(policy,)))
        assert decide(picture(before, *shuffled, policies=(policy,))) == made
        if made.spec is None:
            continue
        spec, generation = made.spec.to_wire(), generation + 1
        assert not find_problems(decode_spec(spec), MACHINE, "node-1", "node-1")
        after = assignment_view(spec, status(generation, alive, report), generation=generation)
        again = decide(picture(after, *shuffled, policies=(policy,)))
        assert again.write is Write.NOTHING


def edited_view(spec: Body) -> PolicyView:
    return replace(policy_view("policy", spec), generation=2)
