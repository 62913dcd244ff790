from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.conditions.reasons import Reason
from numapin_api.status.policy import CpuPolicyStatus
from numapin_operator.observe.records import PolicyView
from numapin_operator.policies.status import (
    NodeOutcome,
    Phase,
    not_served,
    policy_fault,
    policy_status,
    remarked,
    stalled,
    waiting,
)
from numapin_operator.policies.tally import Tally
from support.values.operator import policy_view

NOW = "2026-02-02T00:00:00Z"
POLICY = policy_view("mine")


def in_force(node: str, generation: int = 1) -> NodeOutcome:
    return NodeOutcome(node, "mine", generation, Phase.IN_FORCE, policy_uid=POLICY.uid)


def status_of(
    outcomes: list[NodeOutcome],
    *,
    policy: PolicyView = POLICY,
    overruled: dict[str, list[str]] | None = None,
) -> CpuPolicyStatus:
    tally = Tally()
    for one in outcomes:
        tally.rank(one.node, ("mine",))
        tally.judge(one.node, one)
    for winner, nodes in (overruled or {}).items():
        for node in nodes:
            tally.rank(node, (winner, "mine"))
    return policy_status(policy, tally.summary("mine", policy.generation, POLICY.uid), NOW)


def conditions(status: CpuPolicyStatus) -> dict[str, tuple[str, str]]:
    return {one.type: (one.status, one.reason) for one in status.conditions}


TABLE: list[Any] = [
    pytest.param(
        [in_force("a"), in_force("b")],
        ("True", "InForce"),
        ("False", "Settled"),
        ("False", "NotStalled"),
        id="all-in-force",
    ),
    pytest.param(
        [in_force("a"), waiting(POLICY, "b", "WaitingForTopology", "no report")],
        ("False", "WaitingForTopology"),
        ("True", "WaitingForTopology"),
        ("False", "NotStalled"),
        id="one-waits",
    ),
    pytest.param(
        [in_force("a"), not_served(POLICY, "b", "NodeNotReady", "")],
        ("True", "InForce"),
        ("False", "Settled"),
        ("False", "NotStalled"),
        id="one-not-ready",
    ),
    pytest.param(
        [in_force("a"), stalled(POLICY, "b", "ImpossibleOnNode", "no CPU 64")],
        ("False", "NodesStalled"),
        ("False", "Settled"),
        ("True", "NodesStalled"),
        id="one-stalled",
    ),
    pytest.param(
        [waiting(POLICY, "a", "Applying", ""), stalled(POLICY, "b", "ImpossibleOnNode", "")],
        ("False", "NodesStalled"),
        ("True", "Applying"),
        ("True", "NodesStalled"),
        id="one-waits-one-stalled",
    ),
    pytest.param(
        [in_force("a", generation=0)],
        ("False", "Applying"),
        ("True", "Applying"),
        ("False", "NotStalled"),
        id="outcome-of-an-older-generation",
    ),
    pytest.param(
        [],
        ("True", "NoNodesSelected"),
        ("False", "Settled"),
        ("False", "NotStalled"),
        id="selects-nothing",
    ),
]


@pytest.mark.parametrize(("outcomes", "ready", "reconciling", "halted"), TABLE)
def test_conditions(
    outcomes: list[NodeOutcome],
    ready: tuple[str, str],
    reconciling: tuple[str, str],
    halted: tuple[str, str],
) -> None:
    status = status_of(outcomes)
    assert conditions(status) == {"Ready": ready, "Reconciling": reconciling, "Stalled": halted}
    assert all(one.observed_generation == 1 for one in status.conditions)


def test_counts_and_names() -> None:
    many = [stalled(POLICY, f"n{number:02}", "CgroupsReadOnly", "ro") for number in range(30)]
    status = status_of([in_force("a"), *many])
    assert (status.nodes_selected, status.nodes_in_force, status.nodes_stalled) == (31, 1, 30)
    assert [one.node for one in status.stalled] == [f"n{number:02}" for number in range(20)]
    assert "30 nodes CgroupsReadOnly: n00, n01, n02, n03, n04, ... (ro)" in str(status.conditions)


def test_ready_names_the_nodes_that_are_counted_apart() -> None:
    status = status_of([in_force("a"), not_served(POLICY, "b", "NodeNotReady", "")])
    assert (status.nodes_selected, status.nodes_in_force, status.nodes_not_served) == (2, 1, 1)
    assert "in force on 1 node; 1 node NodeNotReady: b" in str(status.conditions)


def test_ready_names_the_nodes_whose_reserved_memory_differs() -> None:
    differs = remarked(in_force("b"), Reason.MEMORY_RESERVATION_DIFFERS, "1 GiB and 2 GiB")
    status = status_of([in_force("a"), differs])
    assert conditions(status)["Ready"] == ("True", "InForce")
    assert "in force on 2 nodes; 1 node MemoryReservationDiffers: b (1 GiB and 2 GiB)" in str(
        status.conditions
    )


def test_an_overruled_policy_names_the_governing_ones() -> None:
    status = status_of([], overruled={"theirs": ["a", "b"], "others": ["c"]})
    assert status.nodes_selected == 3
    assert [(one.policy, one.nodes, one.examples) for one in status.conflicts] == [
        ("others", 1, ("c",)),
        ("theirs", 2, ("a", "b")),
    ]
    assert conditions(status)["Ready"] == ("True", "Overruled")


def test_a_policy_that_is_not_supported_is_stalled_even_without_nodes() -> None:
    fields = ("onUnsatisfiable: Hold with --shards above 1",)
    status = status_of([], policy=replace(policy_view("mine"), divided=fields))
    assert conditions(status)["Stalled"] == ("True", "UnsupportedField")
    assert conditions(status)["Ready"] == ("False", "UnsupportedField")
    assert "spec.onUnsatisfiable: Hold" in str(status.conditions)


def test_an_invalid_policy_is_stalled_and_still_selects() -> None:
    raw = {"nodeSelector": {"a": "b"}, "priority": 3, "reserved": {"cpus": "9-1"}}
    policy = policy_view("mine", raw)
    assert (policy.spec.node_selector, policy.spec.priority) == ({"a": "b"}, 3)
    status = status_of([], policy=policy)
    assert conditions(status)["Stalled"] == ("True", "InvalidPolicy")
    assert "spec.reserved.cpus" in str(status.conditions)


def test_fields_of_a_later_release_are_named_and_change_nothing_else() -> None:
    plain = policy_view("mine", {"reserved": {"count": 1}})
    later = policy_view("mine", {"reserved": {"count": 1, "spread": True}, "future": {"a": 1}})
    assert not plain.decides_like(later)
    first, second = (status_of([in_force("a")], policy=one) for one in (plain, later))
    assert conditions(first) == conditions(second)
    ready, others = second.conditions[0], second.conditions[1:]
    assert ready.message == (
        "in force on 1 node; "
        "this operator does not know spec.reserved.spread, spec.future: no effect"
    )
    assert others == first.conditions[1:]


def test_a_condition_that_does_not_change_keeps_its_time() -> None:
    first = status_of([in_force("a")])
    known = policy_view("mine", status=first.to_wire())
    tally = Tally()
    tally.rank("a", ("mine",))
    tally.judge("a", in_force("a"))
    assert (
        policy_status(known, tally.summary("mine", 1, POLICY.uid), "2027-01-01T00:00:00Z") == first
    )


OUTCOMES = st.lists(
    st.builds(
        NodeOutcome,
        node=st.sampled_from([f"n{number}" for number in range(30)]),
        policy=st.just("mine"),
        generation=st.just(1),
        policy_uid=st.just(POLICY.uid),
        phase=st.sampled_from(Phase),
        reason=st.sampled_from(["Applying", "CgroupsReadOnly"]),
        message=st.sampled_from(["", "why"]),
    ),
    unique_by=lambda one: one.node,
)


@given(OUTCOMES, st.randoms(use_true_random=False))
def test_the_order_of_outcomes_never_matters(outcomes: list[NodeOutcome], random: Any) -> None:
    shuffled = list(outcomes)
    random.shuffle(shuffled)
    one, other = status_of(outcomes), status_of(shuffled)
    assert one.model_dump_json() == other.model_dump_json()
    assert one.nodes_in_force + one.nodes_stalled <= one.nodes_selected


def test_many_reasons_of_any_length_are_cut() -> None:
    """Each node may report a reason and a message of its own."""
    outcomes = [stalled(POLICY, f"n{n:03}", f"R{n}{'r' * 1000}", "é" * 9999) for n in range(200)]
    status = status_of(outcomes)
    assert CpuPolicyStatus.model_validate(status.to_wire()) == status
    [message] = {one.message for one in status.conditions if one.type == "Stalled"}
    assert message.endswith(("; and 199 more", "; and 198 more"))
    assert len(message) <= 4096
    assert [len(one.message) for one in status.stalled] == [1024] * 20


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"mode": "None"},
        {"onUnsatisfiable": "Evict"},
        {"mode": "Dynamic"},
        {"isolation": "Partition"},
        {"system": {"processes": "KeepOff"}},
        {"cache": {"classes": {"exclusive": {"l3Percent": 40}}}},
        {"onUnsatisfiable": "Hold"},
    ],
    ids=str,
)
def test_each_value_of_the_api_is_supported(spec: dict[str, Any]) -> None:
    assert policy_fault(policy_view("mine", spec)) is None
