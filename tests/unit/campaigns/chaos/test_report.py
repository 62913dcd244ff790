"""The figures of a chaos run."""

from dataclasses import replace

import pytest

from numapin_campaigns.chaos.cluster_state import Memory
from numapin_campaigns.chaos.plan import make_plan
from numapin_campaigns.chaos.report import PodsReport
from numapin_campaigns.chaos.verdict import Excuse
from numapin_campaigns.frame.downtime import Downtime
from numapin_campaigns.frame.judge import Verdict
from numapin_campaigns.sampling.assignment_versions import AssignmentVersion, ContainerKey
from numapin_campaigns.sampling.samples import (
    Anomaly,
    AnomalyKind,
    Overwrite,
    Samples,
    Seen,
)

OWNER: ContainerKey = ("uid-a", "main")


CLAIM = ((OWNER, 0b10),)


def anomaly(at: float, kind: AnomalyKind = AnomalyKind.OVERLAP) -> Anomaly:
    return Anomaly(at, kind, OWNER, "besteffort/podb/c", 0b11, 0.0)


def overwrite(seconds: float | None, outcome: str = "Reverted", up: bool = True) -> Overwrite:
    ended_at = None if seconds is None else 5.0 + seconds
    return Overwrite("OverwriteExclusive", "poda/x", 1, 5.0, ended_at, outcome, up)


@pytest.fixture
def report() -> PodsReport:
    seen = (
        Seen("poda/x", "uid-a", "main", 1.0, 9.0),
        Seen("poda/s", "uid-a", "", 1.0, 9.0),
        Seen("podb/y", "uid-b", "main", 2.0, None),
    )
    versions = (AssignmentVersion(1.0, 1), AssignmentVersion(2.0, 2, CLAIM, CLAIM, 1, 4))
    by_hand = [(Excuse.INJECTED, anomaly(at)) for at in (1.0, 1.05, 1.1, 7.0, 7.01)]
    return PodsReport(
        seed=5,
        plan=make_plan(5, 20),
        samples=Samples(1000, 400, frozenset(), 9.0, 0.02, 0.001, (), versions, seen),
        verdict=Verdict((anomaly(3.0), anomaly(3.25)), tuple(by_hand)),
        overwrites=[
            overwrite(0.004),
            overwrite(0.002),
            overwrite(1.5, up=False),
            overwrite(None, "Remained"),
        ],
        downtimes=[Downtime("enforcer", 1.0, 2.5), Downtime("enforcer", 4.0, 5.0)],
        kills={"enforcer": 2},
        ends={"Forced": 1},
        memory={
            "enforcer": [Memory(0.0, 7, 50.0), Memory(30.0, 7, 52.0), Memory(61.0, 8, 51.0)],
            "operator": [],
        },
        drift_count=4,
        files=((13, 10), (14, 10)),
        problems=["not so after 150 s: it rains"],
    )


def test_figures_are_counted_and_measured(report: PodsReport) -> None:
    figures = report.to_json()
    assert (figures["podsRun"], figures["podsEnded"], figures["exclusiveReported"]) == (2, 1, 1)
    assert figures["containersRun"] == 2
    (violation,) = figures["violations"]
    assert (violation["anomalies"], violation["first"], violation["last"]) == (2, 3.0, 3.25)
    assert figures["excused"] == {
        "Injected: Overlap": {"anomalies": 5, "cgroups": 1, "longestSeconds": 0.1}
    }
    assert figures["revertMilliseconds"] == {"count": 2, "p50": 4.0, "p99": 4.0, "max": 4.0}
    assert figures["revertsWhileTheEnforcerWasAway"] == 1
    assert figures["overwrites"] == {
        "OverwriteExclusive: Reverted": 3,
        "OverwriteExclusive: Remained": 1,
    }
    assert figures["downSeconds"] == {"enforcer": 2.5}
    assert figures["enforcerMiB"] == {
        "first": 50.0,
        "last": 51.0,
        "greatest": 52.0,
        "processes": 2,
        "eachMinute": [52.0, 51.0],
    }
    assert [one.outcome for one in report.unreverted] == ["Remained"]
    assert not replace(report, verdict=Verdict[Anomaly](), problems=[]).good


def test_a_container_that_is_given_cpus_again_is_counted(report: PodsReport) -> None:
    without = AssignmentVersion(3.0, 3)
    first, second = report.samples.versions
    versions = (first, second, without, second, second, without, second)
    samples = replace(report.samples, versions=versions)
    assert report.exclusive_again == 0
    assert replace(report, samples=samples).exclusive_again == 2


def test_looks_at_threads_are_one_row_although_they_are_rare(report: PodsReport) -> None:
    looks = [anomaly(at, AnomalyKind.THREAD) for at in (1.0, 1.3, 1.6, 9.0)]
    excused = tuple((Excuse.NOT_LOOKED_AT, one) for one in looks)
    assert replace(report, verdict=Verdict((), excused)).to_json()["excused"] == {
        "NotLookedAt: Thread": {"anomalies": 4, "cgroups": 1, "longestSeconds": 0.6}
    }


def test_the_summary_names_what_is_wrong(report: PodsReport) -> None:
    page = report.summary()
    assert "seed: 5\n" in page
    assert "podsRun: 2\npodsEnded: 1\n" in page
    assert "violations: 2\n  kind Overlap, container uid-a/main" in page
    assert "revertMilliseconds: count 2, p50 4.0, p99 4.0, max 4.0\n" in page
    assert "PROBLEM: not so after 150 s: it rains" in page
