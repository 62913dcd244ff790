"""What a run that follows announced moves counts as a violation, and as a problem."""

import pytest

from numapin_api.cpuset import CpuSet
from numapin_campaigns.told import figures, problems, violations
from numapin_campaigns.workload.notice import Departure, Followed, Reading

ANNOUNCED = Departure(CpuSet([1]), 10.0, 12.5)
SUDDEN = Departure(CpuSet([5]), None, 14.0)


def test_a_cpu_that_leaves_without_a_notice_and_one_that_is_shared_are_violations() -> None:
    shared = Reading(3.0, CpuSet([2]))
    assert list(violations(Followed((ANNOUNCED,)))) == []
    assert list(violations(Followed((ANNOUNCED, SUDDEN), shared=(shared,)))) == [
        {"left without a notice": "5", "at": 14.0},
        {"shared": "2", "at": 3.0},
    ]


@pytest.mark.parametrize(
    ("moves", "causes", "found"),
    [
        (1, {}, []),
        (2, {}, ["CPUs left 1 times in 2 moves"]),
        (1, {"Other": 3}, ["3 external changes were counted: Other"]),
    ],
)
def test_a_move_that_was_not_seen_and_a_counted_write_are_problems(
    moves: int, causes: dict[str, int], found: list[str]
) -> None:
    assert list(problems(Followed((ANNOUNCED,)), moves, causes)) == found


def test_the_least_notice_is_shown() -> None:
    later = Departure(CpuSet([1]), 20.0, 23.0)
    shown = figures(Followed((ANNOUNCED, later), asked=7))
    assert shown["noticeSeconds"] == {"least": 2.5, "count": 2, "p50": 3.0, "p99": 3.0, "max": 3.0}
    assert (shown["told"], shown["asked"]) == (2, 7)
