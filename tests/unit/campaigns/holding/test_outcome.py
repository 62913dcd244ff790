"""What a run counts, and what it finds."""

from typing import Any

import pytest

from numapin_campaigns.holding.outcome import Fate, Outcome, Way


def fate(**fields: Any) -> Fate:
    """A pod that was placed, bound there and has ended, unless `fields` say otherwise."""
    good: dict[str, Any] = {"bound": 0.5, "placed": 0.4, "node": "n", "place": "n", "ended": True}
    return Fate("a", **(good | fields))


def outcome(*fates: Fate, way: Way = Way.HOLD, broken: tuple[str, ...] = ()) -> Outcome:
    return Outcome(way, fates, 1.0, 0.5, broken)


def test_pods_are_counted_by_when_they_had_their_place() -> None:
    found = outcome(
        fate(),
        fate(placed=1.4),
        fate(placed=1.6),
        fate(placed=None, place=""),
        fate(placed=None, bound=None, refusals=3, ended=False),
        way=Way.SHARE,
    ).figures()
    assert [found[one] for one in ("pods", "atStart", "later", "never")] == [5, 2, 1, 2]
    assert found["failedPods"] == 3
    assert found["placedSeconds"] == {"count": 3, "p50": 1.4, "p99": 1.6, "max": 1.6}
    assert found["boundSeconds"]["count"] == 4


def test_a_run_in_which_all_is_as_it_must_be() -> None:
    found = outcome(fate(), fate(bound=2.0))
    assert (list(found.violations()), found.problems()) == ([], [])


@pytest.mark.parametrize(
    ("wrong", "seen"),
    [
        ({"placed": None}, "a was bound without a place"),
        ({"placed": 9.0}, "a was bound without a place"),
        ({"place": "m"}, "a was bound to n, and has its place on m"),
    ],
    ids=["no place", "a late one", "elsewhere"],
)
def test_a_held_pod_is_bound_where_it_has_its_place(wrong: dict[str, Any], seen: str) -> None:
    assert [one["seen"] for one in outcome(fate(**wrong)).violations()] == [seen]
    assert list(outcome(fate(**wrong), way=Way.SHARE).violations()) == []


def test_what_is_wrong_with_an_assignment_is_a_violation_in_each_way() -> None:
    for way in Way:
        assert list(outcome(fate(), way=way, broken=("n: both have 3",)).violations())


def test_a_pod_that_does_not_end_is_a_problem() -> None:
    [problem] = outcome(fate(ended=False), fate()).problems()
    assert problem == "Hold: 1 pods did not end: a"
