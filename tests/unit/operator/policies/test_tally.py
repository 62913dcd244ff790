"""Counting change by change gives what counting everything gives."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from numapin_api.conditions.reasons import Reason
from numapin_operator.policies.status import (
    EXAMPLES_NAMED,
    STALLED_NAMED,
    NodeGroup,
    NodeOutcome,
    Phase,
    PolicyNodes,
)
from numapin_operator.policies.tally import NOT_PLANNED, Ranked, Tally

NODES = st.sampled_from([f"n{number}" for number in range(8)])
POLICIES = ("a", "b", "c")
RANKED = st.lists(st.sampled_from(POLICIES), unique=True, max_size=3).map(tuple)
OUTCOMES = st.builds(
    NodeOutcome,
    node=st.just(""),
    policy=st.sampled_from(POLICIES),
    generation=st.integers(1, 2),
    phase=st.sampled_from(Phase),
    reason=st.sampled_from(["Applying", "InForce", "CgroupsReadOnly"]),
    message=st.sampled_from(["", "why"]),
    refused=st.integers(0, 3),
    outdated=st.integers(0, 3),
)
STEPS = st.lists(
    st.tuples(NODES, st.one_of(RANKED, OUTCOMES, st.none(), st.integers(1, 2))), max_size=40
)


def count_everything(
    policy: str,
    generation: int,
    ranked: dict[str, Ranked],
    outcomes: dict[str, NodeOutcome | None],
) -> PolicyNodes:
    groups: dict[tuple[Phase, str], list[tuple[str, str]]] = defaultdict(list)
    overruled: dict[str, list[str]] = defaultdict(list)
    stalled: list[NodeOutcome] = []
    current: list[NodeOutcome] = []
    for node in sorted(node for node in ranked if policy in ranked[node]):
        outcome = outcomes.get(node)
        if ranked[node][0] != policy:
            overruled[ranked[node][0]].append(node)
        elif outcome and (outcome.policy, outcome.generation) == (policy, generation):
            groups[outcome.phase, outcome.reason].append((node, outcome.message))
            current.append(outcome)
            stalled += [outcome] if outcome.phase is Phase.STALLED else []
        else:
            groups[Phase.UNDER_WAY, "Applying"].append((node, NOT_PLANNED))

    def of_phase(phase: Phase) -> tuple[NodeGroup, ...]:
        found = [
            NodeGroup(reason, len(each), tuple(n for n, _ in each[:EXAMPLES_NAMED]), each[0][1])
            for (one, reason), each in groups.items()
            if one is phase
        ]
        return tuple(sorted(found, key=lambda group: (-group.nodes, group.common)))

    return PolicyNodes(
        governed=sum(map(len, groups.values())),
        in_force=sum(group.nodes for group in of_phase(Phase.IN_FORCE)),
        remarks=tuple(
            group for group in of_phase(Phase.IN_FORCE) if group.common != Reason.IN_FORCE
        ),
        under_way=of_phase(Phase.UNDER_WAY),
        stalled=of_phase(Phase.STALLED),
        stalled_nodes=tuple(stalled[:STALLED_NAMED]),
        overruled=tuple(
            NodeGroup(winner, len(lost), tuple(lost[:EXAMPLES_NAMED]))
            for winner, lost in sorted(overruled.items())
        ),
        not_served=of_phase(Phase.NOT_SERVED),
        refused=sum(one.refused for one in current),
        outdated=sum(one.outdated for one in current),
    )


@given(STEPS)
def test_counting_change_by_change_is_counting_everything(
    steps: list[tuple[str, Ranked | NodeOutcome | int | None]],
) -> None:
    tally, generation = Tally(), 1
    ranked: dict[str, Ranked] = {}
    outcomes: dict[str, NodeOutcome | None] = {}
    for node, step in steps:
        before = {name: tally.summary(name, generation) for name in POLICIES}
        reported: set[str] = set()
        if isinstance(step, tuple):
            ranked[node] = step
            reported = tally.rank(node, step)
        elif isinstance(step, int):
            generation = step
        else:
            outcomes[node] = step
            reported = tally.judge(node, step)
        for name in POLICIES:
            summary = tally.summary(name, generation)
            assert summary == count_everything(name, generation, ranked, outcomes)
            assert isinstance(step, int) or summary == before[name] or name in reported


def test_nothing_is_left_of_nodes_and_policies_that_are_gone() -> None:
    tally = Tally()
    tally.rank("n", ("a", "b"))
    tally.judge("n", NodeOutcome("n", "a", 1, Phase.STALLED))
    tally.rank("n", ())
    tally.judge("n", None)
    assert vars(tally) == vars(Tally())


def test_outcomes_of_a_deleted_policy_are_none_of_the_next_one_of_its_name() -> None:
    """It begins at generation 1 again, and no node was planned by it yet."""
    tally = Tally()
    tally.rank("n", ("a",))
    tally.judge("n", NodeOutcome("n", "a", 1, Phase.IN_FORCE, policy_uid="first"))
    assert tally.summary("a", 1, "first").in_force == 1
    again = tally.summary("a", 1, "second")
    assert (again.in_force, [one.common for one in again.under_way]) == (0, ["Applying"])
    tally.judge("n", NodeOutcome("n", "a", 1, Phase.IN_FORCE, policy_uid="second"))
    assert tally.summary("a", 1, "second").in_force == 1
