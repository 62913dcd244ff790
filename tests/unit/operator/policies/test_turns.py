"""How many nodes of a policy change at the same time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_operator.policies.turns import Turns, node_limit

NODES = tuple("abcdefgh")
ONE, TWO = ("uid", 1), ("uid", 2)


@pytest.mark.parametrize(
    ("setting", "nodes", "limit"),
    [
        ("10%", 1, None),
        ("10%", 2, 1),
        ("10%", 10, 1),
        ("10%", 11, 2),
        ("100%", 10, None),
        ("3", 3, None),
        ("3", 4, 3),
        ("99%", 100, 99),
        ("99%", 10, None),
    ],
)
def test_node_limit(setting: str, nodes: int, limit: int | None) -> None:
    assert node_limit(setting, nodes) == limit


def admitted(turns: Turns, node: str, limit: int | None) -> bool:
    """Give a node its turn if there is room; whether it has it."""
    turns.admit(node, limit)
    return not turns.is_waiting(node)


def test_a_node_that_changes_already_goes_on_within_the_limit() -> None:
    turns = Turns(ONE)
    assert [node for node in NODES[:3] if admitted(turns, node, 3)] == ["a", "b", "c"]
    turns = Turns(TWO, changing=turns.changing)
    assert [node for node in NODES if admitted(turns, node, 2)] == ["a", "b"]
    turns.forget("a")
    assert turns.call(2) == ["c"]  # it changes already: no further node does
    assert admitted(turns, "c", 2)
    turns.forget("b")
    assert turns.call(2) == ["d"]


def test_an_older_change_that_has_been_answered_makes_room() -> None:
    turns = Turns(ONE)
    assert admitted(turns, "a", 1)
    turns = Turns(TWO, changing=turns.changing)
    turns.note("a", is_changing=False)
    assert admitted(turns, "b", 1)


def test_no_limit_stops_for_no_stalled_node() -> None:
    turns = Turns(ONE, stalled={"a"})
    assert not admitted(turns, "b", 1)
    assert admitted(turns, "b", None)


EVENTS = st.lists(
    st.tuples(st.sampled_from(("plan", "answer", "stall", "edit")), st.sampled_from(NODES))
)


@given(st.integers(1, 3), EVENTS)
def test_never_more_than_allowed(limit: int, events: list[tuple[str, str]]) -> None:
    turns, generation = Turns(ONE), 1
    for event, node in events:
        if event == "edit":
            generation += 1
            turns = Turns(("uid", generation), turns.changing)
        elif event == "plan":
            turns.admit(node, limit)
        else:
            turns.forget(node)
            if event == "stall":
                turns.stalled.add(node)
            assert not (turns.stalled and turns.call(limit))
        assert len(turns.changing | turns.called) <= limit + len(turns.stalled)
