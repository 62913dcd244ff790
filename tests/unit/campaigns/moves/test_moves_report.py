"""The figures of a chaos run with moves."""

import json
from dataclasses import replace

import pytest

from numapin_api.cpuset import CpuSet
from numapin_campaigns.faults.kills import KILL_ENFORCER, STOPS
from numapin_campaigns.frame.downtime import Downtime
from numapin_campaigns.frame.judge import Verdict
from numapin_campaigns.moves.judgement import Excuse, Finding, Kind, Witness
from numapin_campaigns.moves.plan import Move, Resize, Stage, make_moves_plan
from numapin_campaigns.moves.report import MadeRound, MovesReport
from numapin_campaigns.workload.notice import Departure, Followed

CPU = CpuSet.parse("4")
LOST = Finding(Kind.UNANNOUNCED, "told", CPU, 12.0, 0.25)


@pytest.fixture
def report() -> MovesReport:
    departures = (Departure(CPU, 5.0, 9.5), Departure(CPU, None, 12.0))
    faults = ((KILL_ENFORCER, Stage.BEGUN), (STOPS[0], Stage.ASKED))
    return MovesReport(
        seed=7,
        plan=make_moves_plan(7, 8),
        rounds=[
            MadeRound(1, Move(0), faults, 1.0, 20.0),
            MadeRound(2, Resize("2"), (), 20.0, 30.0),
        ],
        witnesses=[Witness("told", Followed(departures, asked=9000, longest_gap_seconds=0.4))],
        verdict=Verdict((), ((Excuse.LATE_WRITE, LOST),)),
        departures=departures,
        downtimes=[Downtime("enforcer", 2.0, 12.0), Downtime("enforcer", 14.0, 21.0, stopped=True)],
        kills={"enforcer": 1},
        drift_causes={"OwnerMoved": 1},
        noticed_seconds=[4.12],
        problems=[],
        seconds=30.0,
    )


def test_the_figures_are_counted_and_what_is_excused_is_named(report: MovesReport) -> None:
    figures = json.loads(json.dumps(report.to_json()))
    assert (figures["moves"], figures["resizes"]) == (1, 1)
    assert figures["rounds"] == {"planned": 8, "made": 2}
    assert figures["faults"] == {"KillEnforcer": 1, "StopEnforcer": 1}
    assert figures["faultsAtStages"] == {"Begun": 1, "Asked": 1}
    assert (figures["departures"], figures["announced"]) == (2, 1)
    assert figures["noticeSeconds"]["least"] == 4.5
    assert figures["excused"] == {"LateWrite: Unannounced": {"count": 1, "longestSeconds": 0.25}}
    assert figures["downSeconds"] == {"enforcer": 17.0}
    assert figures["stopNoticedSeconds"] == [4.1]
    text = report.summary()
    assert "excused: LateWrite: Unannounced: count 1, longestSeconds 0.25" in text
    assert "violations: 0" in text


def test_a_run_is_good_without_violation_and_without_problem(report: MovesReport) -> None:
    assert report.good
    assert not replace(report, problems=["round 3: waited in vain"]).good
    shared = Finding(Kind.SHARED, "told", CPU, 3.0)
    bad = replace(report, verdict=Verdict((shared,)))
    assert not bad.good
    assert bad.to_json()["shared"] == 1
    assert "kind Shared, pod told, cpus 4, at 3.0" in bad.summary()


def test_a_run_that_ended_before_the_first_departure_has_figures_too(report: MovesReport) -> None:
    early = replace(
        report, rounds=[], verdict=Verdict[Finding](), departures=(), problems=["round 1: in vain"]
    )
    assert early.to_json()["noticeSeconds"] == {}
    assert "PROBLEM: round 1: in vain" in early.summary()
