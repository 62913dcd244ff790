"""Which anomalies of a chaos run are let go, and which are not."""

from dataclasses import replace

import pytest

from numapin_campaigns.chaos.verdict import Evidence, Excuse, judge
from numapin_campaigns.frame.downtime import Downtime, noticed_after, unnoticed
from numapin_campaigns.sampling.assignment_versions import AssignmentVersion, ContainerKey
from numapin_campaigns.sampling.samples import Anomaly, AnomalyKind, Overwrite

OWNER: ContainerKey = ("uid-a", "main")
OWN, SHARED, ALL = 0b10, 0b01, 0b11
BUSY = "besteffort/podb/c"
BESIDE = "podb/c"
CLASS = "besteffort"
LISTED = AssignmentVersion(1.0, 3, ((OWNER, OWN),), ((OWNER, OWN),), SHARED)
WITHDRAWN = AssignmentVersion(9.0, 4, (), (), ALL)


def anomaly(
    at: float,
    path: str = BUSY,
    found: int = ALL,
    seen_at: float = 0.0,
    kind: AnomalyKind = AnomalyKind.OVERLAP,
) -> Anomaly:
    return Anomaly(at, kind, OWNER, path, found, seen_at)


def new_container(
    path: str, kind: AnomalyKind = AnomalyKind.OVERLAP, at: float = 5.5, seen_at: float = 5.4
) -> Anomaly:
    return Anomaly(at, kind, OWNER, path, ALL, seen_at, started=False)


def overwrite(path: str = BUSY, ended_at: float | None = 6.0) -> Overwrite:
    return Overwrite("OverwriteShared", path, ALL, 5.0, ended_at, "Reverted", True)


def evidence(
    *overwrites: Overwrite,
    downtimes: tuple[Downtime, ...] = (),
    taken: tuple[tuple[float, int], ...] = ((1.0, 3),),
    versions: tuple[AssignmentVersion, ...] = (LISTED, WITHDRAWN),
    noticed: tuple[float, ...] = (),
    realtime: bool = True,
) -> Evidence:
    return Evidence(overwrites, downtimes, taken, versions, noticed, realtime)


DOWN = Downtime("enforcer", 4.0, 7.0)
STOPPED = Downtime("enforcer", 4.0, 12.0, stopped=True)


@pytest.mark.parametrize(
    ("seen", "known", "excuse"),
    [
        pytest.param(anomaly(5.5), evidence(), None, id="nothing-explains-it"),
        pytest.param(anomaly(5.5), evidence(overwrite()), Excuse.INJECTED, id="written-by-us"),
        pytest.param(anomaly(4.9), evidence(overwrite()), None, id="before-we-wrote"),
        pytest.param(anomaly(6.1), evidence(overwrite()), None, id="after-it-was-repaired"),
        pytest.param(
            replace(anomaly(4.9), until=5.1),
            evidence(overwrite()),
            Excuse.INJECTED,
            id="looked-while-we-wrote",
        ),
        pytest.param(
            anomaly(99.0), evidence(overwrite(ended_at=None)), Excuse.INJECTED, id="never-repaired"
        ),
        pytest.param(
            anomaly(5.5, found=OWN), evidence(overwrite()), None, id="not-what-we-wrote-there"
        ),
        pytest.param(
            anomaly(5.5, "besteffort/podx/y"), evidence(overwrite()), None, id="another-cgroup"
        ),
        pytest.param(
            anomaly(5.5, seen_at=5.2),
            evidence(overwrite(CLASS)),
            Excuse.INJECTED,
            id="born-in-what-we-wrote",
        ),
        pytest.param(
            anomaly(5.5, seen_at=4.0), evidence(overwrite(CLASS)), None, id="was-there-before"
        ),
        pytest.param(
            anomaly(5.5),
            evidence(taken=((1.0, 3), (5.4, 4))),
            Excuse.WITHDRAWN,
            id="the-enforcer-had-taken-the-next-spec",
        ),
        pytest.param(
            anomaly(5.5),
            evidence(taken=((1.0, 3), (5.6, 4))),
            None,
            id="the-enforcer-had-not-taken-it-yet",
        ),
        pytest.param(
            replace(anomaly(5.5), until=5.6),
            evidence(taken=((1.0, 3), (5.6, 4))),
            Excuse.WITHDRAWN,
            id="the-enforcer-took-it-while-we-looked",
        ),
        pytest.param(
            anomaly(5.5),
            evidence(taken=((1.0, 2),)),
            None,
            id="a-generation-never-seen-is-as-the-next-one",
        ),
        pytest.param(
            new_container(BESIDE),
            evidence(downtimes=(DOWN,)),
            Excuse.UNFENCED_NEW_POD,
            id="guaranteed-and-born-while-the-enforcer-was-dead",
        ),
        pytest.param(
            anomaly(5.5, BESIDE, seen_at=4.5),
            evidence(downtimes=(DOWN,)),
            None,
            id="its-program-had-started-by-then",
        ),
        pytest.param(
            anomaly(4.09, "poduid-a/d", seen_at=4.01),
            evidence(downtimes=(DOWN,)),
            Excuse.TAKEOVER,
            id="born-before-the-standby-had-the-lock",
        ),
        pytest.param(
            anomaly(4.11, "poduid-a/d", seen_at=4.01),
            evidence(downtimes=(DOWN,)),
            None,
            id="the-standby-has-taken-over-by-then",
        ),
        pytest.param(
            anomaly(4.09, "poduid-a/d", seen_at=3.9),
            evidence(downtimes=(DOWN,)),
            None,
            id="the-enforcer-lived-when-it-was-born",
        ),
        pytest.param(
            new_container(BUSY),
            evidence(downtimes=(DOWN,)),
            None,
            id="a-best-effort-pod-is-born-fenced",
        ),
        pytest.param(
            new_container(BESIDE, seen_at=3.5),
            evidence(downtimes=(DOWN,)),
            None,
            id="born-before-the-enforcer-died",
        ),
        pytest.param(
            new_container(BESIDE, at=7.1, seen_at=4.5),
            evidence(downtimes=(DOWN,)),
            None,
            id="seen-by-the-next-enforcer",
        ),
        pytest.param(
            new_container(BESIDE),
            evidence(downtimes=(Downtime("operator", 4.0, 7.0),)),
            None,
            id="the-operator-fences-no-cgroup",
        ),
        pytest.param(
            new_container("poduid-a/d"),
            evidence(),
            Excuse.NOT_STARTED,
            id="of-its-pod-and-not-started",
        ),
        pytest.param(anomaly(5.5, "poduid-a/d"), evidence(), None, id="of-its-pod-and-started"),
        pytest.param(new_container(BUSY), evidence(), None, id="not-started-but-of-another-pod"),
        pytest.param(
            new_container("poduid-a/d", AnomalyKind.LOST_PIN), evidence(), None, id="a-pin-is-a-pin"
        ),
        pytest.param(
            anomaly(9.5, "poduid-a/d", seen_at=4.6),
            evidence(realtime=False),
            Excuse.ORDINARY_PRIORITY,
            id="new-and-started-before-an-ordinary-enforcer-was-on-a-cpu",
        ),
        pytest.param(
            anomaly(9.7, "poduid-a/d", seen_at=4.6),
            evidence(realtime=False),
            None,
            id="an-ordinary-enforcer-comes-within-five-seconds",
        ),
        pytest.param(
            anomaly(5.5, seen_at=4.6, kind=AnomalyKind.TWO_EXCLUSIVE),
            evidence(realtime=False),
            None,
            id="two-exclusive-containers-are-two-at-any-priority",
        ),
        pytest.param(
            anomaly(5.5, kind=AnomalyKind.TWO_EXCLUSIVE),
            evidence(taken=((1.0, 3), (5.4, 4))),
            None,
            id="two-exclusive-containers-are-two-whichever-is-listed",
        ),
    ],
)
def test_an_anomaly_is_excused_for_one_reason_or_is_a_violation(
    seen: Anomaly, known: Evidence, excuse: Excuse | None
) -> None:
    verdict = judge([seen], known)
    assert verdict.excused == (((excuse, seen),) if excuse else ())
    assert verdict.violations == (() if excuse else (seen,))


@pytest.mark.parametrize(
    ("seen", "noticed", "excuse"),
    [
        pytest.param(anomaly(5.5, BESIDE, seen_at=5.4), (8.0,), "EnforcerStopped", id="unnoticed"),
        pytest.param(anomaly(8.9, BESIDE, seen_at=5.4), (8.0,), "EnforcerStopped", id="first-pass"),
        pytest.param(anomaly(9.1, BESIDE, seen_at=5.4), (8.0,), None, id="noticed-and-not-fenced"),
        pytest.param(anomaly(11.9, BESIDE, seen_at=9.0), (), "EnforcerStopped", id="never-noticed"),
        pytest.param(anomaly(12.1, BESIDE, seen_at=9.0), (), None, id="goes-on-again"),
        pytest.param(anomaly(5.5, BESIDE, seen_at=3.0), (8.0,), None, id="was-there-before"),
        pytest.param(anomaly(5.5, BUSY, seen_at=5.4), (8.0,), None, id="its-class-is-fenced"),
        pytest.param(anomaly(5.5, BESIDE, seen_at=5.4), (2.0,), "EnforcerStopped", id="other-stop"),
    ],
)
def test_a_stopped_enforcer_explains_new_guaranteed_pods_until_the_standby_has_noticed(
    seen: Anomaly, noticed: tuple[float, ...], excuse: str | None
) -> None:
    verdict = judge([seen], evidence(downtimes=(STOPPED,), noticed=noticed))
    assert [one.value for one, _ in verdict.excused] == ([excuse] if excuse else [])


def test_a_standby_without_real_time_priority_may_need_longer_for_its_first_pass() -> None:
    late = anomaly(11.9, BESIDE, seen_at=5.4)
    for realtime in (True, False):
        known = evidence(downtimes=(STOPPED,), noticed=(8.0,), realtime=realtime)
        assert judge([late], known).violations == ((late,) if realtime else ())


def test_the_time_until_the_standby_noticed_is_that_of_each_stop() -> None:
    again = replace(STOPPED, killed_at=20.0, ready_at=30.0)
    assert noticed_after([STOPPED, DOWN, again], [2.0, 8.5, 40.0]) == [4.5, None]


def test_a_stop_that_the_standby_did_not_notice_is_a_problem() -> None:
    assert unnoticed([4.5, None]) == ["the standby did not notice stop 2 of the enforcer"]
    assert unnoticed([4.5]) == []


def thread(at: float) -> Anomaly:
    """A thread that was first seen at 10 s."""
    return anomaly(at, found=ALL, seen_at=10.0, kind=AnomalyKind.THREAD)


@pytest.mark.parametrize(
    ("at", "down", "excused"),
    [
        pytest.param(24.9, (), True, id="before-the-next-resync"),
        pytest.param(25.1, (), False, id="nobody-looked"),
        pytest.param(25.1, (Downtime("enforcer", 12.0, 14.0),), True, id="enforcer-away"),
        pytest.param(25.1, (Downtime("kube-apiserver", 8.0, 11.0),), True, id="no-report"),
        pytest.param(25.1, (Downtime("kubelet", 12.0, 14.0),), False, id="kubelet-away"),
        pytest.param(25.1, (Downtime("enforcer", 25.2, 30.0),), False, id="away-later"),
        pytest.param(
            31.0,
            (Downtime("enforcer", 12.0, 17.0), Downtime("kube-apiserver", 13.0, 16.0)),
            False,
            id="away-at-the-same-time",
        ),
    ],
)
def test_a_thread_that_is_reported_beside_for_long_is_a_violation(
    at: float, down: tuple[Downtime, ...], excused: bool
) -> None:
    found = judge([thread(at)], evidence(downtimes=down, versions=(LISTED,)))
    assert [excuse for excuse, _ in found.excused] == [Excuse.NOT_LOOKED_AT] * excused


def test_a_look_at_threads_does_not_reach_all_while_there_is_a_crowd() -> None:
    crowded = replace(evidence(versions=(LISTED,)), crowded=((12.0, 14.0), (26.0, 30.0)))
    found = judge([thread(26.9), thread(27.1), thread(31.1)], crowded)
    assert [(one, anomaly.at) for one, anomaly in found.excused] == [
        (Excuse.NOT_LOOKED_AT, 26.9),
        (Excuse.NOT_LOOKED_AT, 27.1),
    ]
    assert [one.at for one in found.violations] == [31.1]


def test_what_the_enforcer_no_longer_lists_may_be_used_by_threads() -> None:
    taken = evidence(taken=((1.0, 3), (20.0, 4)))
    assert [excuse for excuse, _ in judge([thread(30.0)], taken).excused] == [Excuse.WITHDRAWN]
