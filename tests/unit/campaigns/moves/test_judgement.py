"""What workloads saw that must not be, and what of it docs/notice.md describes."""

import json
from collections.abc import Sequence

import pytest

from numapin_api.cpuset import CpuSet
from numapin_campaigns.frame.judge import Verdict
from numapin_campaigns.moves.evidence import without_cpus
from numapin_campaigns.moves.judgement import (
    Announcement,
    Excuse,
    Finding,
    Kind,
    Witness,
    departures,
    judge,
)
from numapin_campaigns.moves.plan import Move, Resize
from numapin_campaigns.moves.report import MadeRound
from numapin_campaigns.workload.notice import parse_followed

NOTICE_SECONDS = 4.0
Row = tuple[float, str, object]


def text(cpus: str, leaving: str = "") -> str:
    main = {"cpus": cpus} | ({"leaving": {"cpus": leaving}} if leaving else {})
    return json.dumps({"version": 1, "containers": {"main": main}})


def witness(*rows: Row, without: Sequence[tuple[float, float]] = ()) -> Witness:
    return Witness("told", parse_followed(json.dumps(row) + "\n" for row in rows), without)


def judged(found: Witness, *announced: tuple[float, str]) -> Verdict[Finding]:
    known = [Announcement("told", CpuSet.parse(cpus), at) for at, cpus in announced]
    return judge([found], known, NOTICE_SECONDS)


def kinds(verdict: Verdict[Finding]) -> list[tuple[Kind, float]]:
    return [(one.kind, one.at) for one in verdict.violations]


MOVED: tuple[Row, ...] = ((1, "cpus", [4]), (10, "cpus", [0, 4]), (20, "cpus", [0]))


def test_a_move_that_was_announced_is_no_violation() -> None:
    found = witness(*MOVED[:2], (15, "file", text("0,4", "4")), *MOVED[2:])
    verdict = judged(found)
    assert (verdict.violations, verdict.excused) == ((), ())
    (departure,) = departures([found])
    assert departure.notice_seconds == 5


def test_a_cpu_that_leaves_unannounced_is_a_violation() -> None:
    assert kinds(judged(witness(*MOVED))) == [(Kind.UNANNOUNCED, 20)]


def test_a_shared_cpu_and_a_moment_without_cpus_are_violations() -> None:
    verdict = judged(witness((1, "cpus", [4]), (2, "shared", [4]), (3, "shared", [])))
    assert kinds(verdict) == [(Kind.SHARED, 2)]
    verdict = judged(witness((1, "cpus", []), (2, "cpus", [4])))
    assert kinds(verdict) == [(Kind.NO_CPUS, 1)]


@pytest.mark.parametrize(
    ("announced", "excused"),
    [
        ((15.9, "4"), True),
        ((15.9, "4-5"), True),
        ((17.0, "4"), False),
        ((15.9, "5"), False),
        ((0.0, "4"), False),
    ],
    ids=["in time", "with another one", "too late", "another one", "of an earlier stay"],
)
def test_a_kubelet_is_late_if_the_api_server_had_it_all_the_time(
    announced: tuple[float, str], excused: bool
) -> None:
    verdict = judged(witness(*MOVED), announced)
    assert [one for one, _ in verdict.excused] == [Excuse.KUBELET_LATE] * excused
    assert len(verdict.violations) == (not excused)


def test_what_another_pod_was_told_excuses_nothing() -> None:
    other = Announcement("resized", CpuSet.parse("4"), 15.0)
    assert kinds(judge([witness(*MOVED)], [other], NOTICE_SECONDS)) == [(Kind.UNANNOUNCED, 20)]


CAME: tuple[Row, ...] = ((1, "cpus", [4]), (10, "cpus", [0, 4]))


@pytest.mark.parametrize(
    ("lost_at", "back_at", "excused"),
    [(12, 13, True), (21, 22, False), (12, 40, False), (12, None, False)],
    ids=["soon", "long after the change", "away for long", "away for good"],
)
def test_a_cpu_that_has_just_come_may_be_away_for_a_moment(
    lost_at: float, back_at: float | None, excused: bool
) -> None:
    back: list[Row] = [] if back_at is None else [(back_at, "cpus", [0, 4])]
    verdict = judged(witness(*CAME, (lost_at, "cpus", [4]), *back))
    assert [one for one, _ in verdict.excused] == [Excuse.LATE_WRITE] * excused
    assert kinds(verdict) == [(Kind.UNANNOUNCED, lost_at)] * (not excused)


def test_a_set_that_is_not_exactly_the_earlier_one_is_no_late_write() -> None:
    rows: list[Row] = [(12, "cpus", [5]), (13, "cpus", [0, 4])]
    assert kinds(judged(witness(*CAME, *rows))) == [(Kind.UNANNOUNCED, 12), (Kind.UNANNOUNCED, 13)]


def test_a_cpu_that_has_just_come_must_not_be_shared_either() -> None:
    rows: list[Row] = [(10.1, "shared", [0]), (12, "cpus", [4]), (13, "cpus", [0, 4])]
    assert kinds(judged(witness(*CAME, *rows))) == [(Kind.SHARED, 10.1)]


LEFT: tuple[Row, ...] = (
    (1, "cpus", [1, 4]),
    (5, "file", text("1,4", "4")),
    (10, "cpus", [1]),
    (11, "file", text("1")),
    (13, "cpus", [1, 4]),
    (13, "shared", [4]),
    (14, "cpus", [1]),
    (14, "shared", []),
)


def other(*rows: Row, without: Sequence[tuple[float, float]] = ()) -> Witness:
    found = witness(*rows, without=without)
    return Witness("resized", found.followed, found.without)


def test_a_cpu_that_has_left_may_be_back_for_a_moment_in_the_shared_pool() -> None:
    verdict = judge([witness(*LEFT), other((1, "cpus", [5]))], [], NOTICE_SECONDS)
    assert verdict.violations == ()
    assert [(excuse, one.kind, one.seconds) for excuse, one in verdict.excused] == [
        (Excuse.LATE_WRITE, Kind.SHARED, 1),
    ]


@pytest.mark.parametrize("at", [2, 13.5])
def test_a_cpu_that_another_one_has_to_itself_by_then_must_not_be_back(at: float) -> None:
    verdict = judge([witness(*LEFT), other((at, "cpus", [4]))], [], NOTICE_SECONDS)
    assert kinds(verdict) == [(Kind.SHARED, 13)]
    shares = other((at, "cpus", [4]), without=[(0, 20)])
    assert judge([witness(*LEFT), shares], [], NOTICE_SECONDS).violations == ()


def test_a_cpu_of_a_set_that_was_never_announced_may_be_back_as_well() -> None:
    rows: list[Row] = [*LEFT[:2], (9, "file", text("1,4")), *LEFT[2:]]
    verdict = judged(witness(*rows), (5.0, "4"))
    assert [(excuse, one.kind, one.at) for excuse, one in verdict.excused] == [
        (Excuse.LATE_WRITE, Kind.SHARED, 13),
        (Excuse.KUBELET_LATE, Kind.UNANNOUNCED, 10),
        (Excuse.LATE_WRITE, Kind.UNANNOUNCED, 14),
    ]


def test_its_own_cpu_must_not_be_shared_while_another_one_is_back() -> None:
    rows = [*LEFT[:5], (13.0, "shared", [1, 4]), *LEFT[6:]]
    verdict = judge([witness(*rows)], [], NOTICE_SECONDS)
    assert kinds(verdict) == [(Kind.SHARED, 13)]


def test_without_exclusive_cpus_nothing_is_judged() -> None:
    rows: list[Row] = [(1, "cpus", [4]), (5, "cpus", [0, 4]), (5, "shared", [0, 4])]
    found = witness(*rows, (9, "cpus", [4]), (12, "cpus", [5]), without=[(3, 10)])
    assert kinds(judged(found)) == [(Kind.UNANNOUNCED, 12)]
    assert len(departures([found])) == 1


def rounds(*changes: Move | Resize) -> list[MadeRound]:
    return [
        MadeRound(number, change, (), number * 10, number * 10 + 9)
        for number, change in enumerate(changes)
    ]


def test_without_cpus_is_from_the_resize_that_takes_them_to_the_end_of_the_one_that_gives() -> None:
    made = rounds(Move(0), Resize("1500m"), Move(1), Resize("1"), Resize("2"), Resize("1"))
    assert without_cpus("resized", made) == [(10, 39)]
    assert without_cpus("told", made) == []
    assert without_cpus("resized", made[:3]) == [(10, float("inf"))]
