"""Drift that was repaired: what is told of it, and how often."""

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import ContainerAssignment
from numapin_enforcer.drift import (
    BURST,
    MOST_REMEMBERED,
    QUIET_SECONDS,
    REFILL_SECONDS,
    Drift,
    DriftTeller,
)

LATE = 1_000_000.0
"""Clocks begin anywhere."""


def _drift(path: str, container: ContainerAssignment | None = None) -> Drift:
    mems = MemSet((0,))
    return Drift(path, (CpuSet((0,)), mems), (CpuSet((1,)), mems), container)


def test_each_cgroups_first_drift_is_told_and_then_rarely() -> None:
    teller = DriftTeller()
    assert teller.admit(_drift("a"), 0) == "cgroup a had cpus 0 instead of 1; it was set right"
    assert teller.admit(_drift("a"), 1) == ""
    assert teller.admit(_drift("a"), 2) == ""
    assert teller.admit(_drift("b"), 2)
    note = teller.admit(_drift("a"), QUIET_SECONDS)
    assert note.endswith("; 2 more times since it was last told")


def test_a_flood_of_drifts_is_not_told() -> None:
    teller = DriftTeller()
    told = [teller.admit(_drift(f"c{number}"), 0) for number in range(BURST + 5)]
    assert [bool(one) for one in told] == [True] * BURST + [False] * 5
    assert teller.admit(_drift("late"), REFILL_SECONDS)


def test_what_was_told_long_ago_is_forgotten() -> None:
    teller = DriftTeller()
    for number in range(5000):
        teller.admit(_drift(f"c{number}"), float(number))
    assert len(teller._told_at) + len(teller._untold) <= MOST_REMEMBERED + 1
    assert teller.admit(_drift("c4999"), 5000.0) == ""


def test_drift_tells_both_sets() -> None:
    drift = Drift("p", (CpuSet(), MemSet((1,))), (CpuSet((1,)), MemSet((0,))))
    assert (
        str(drift)
        == "cgroup p had cpus none instead of 1 and mems 1 instead of 0; it was set right"
    )


def test_after_the_quiet_time_it_is_told_again_and_not_before() -> None:
    teller = DriftTeller()
    assert teller.admit(_drift("a"), LATE)
    assert teller.admit(_drift("a"), LATE + QUIET_SECONDS - 1) == ""
    note = teller.admit(_drift("a"), LATE + QUIET_SECONDS)
    assert note == (
        "cgroup a had cpus 0 instead of 1; it was set right; 1 more times since it was last told"
    )
    assert teller.admit(_drift("a"), LATE + 2 * QUIET_SECONDS).endswith("set right")


def test_room_for_events_comes_back_slowly_and_never_more_than_a_burst() -> None:
    teller = DriftTeller()

    def told(count: int, at: float) -> int:
        return sum(bool(teller.admit(_drift(f"{at} {one}"), at)) for one in range(count))

    assert told(BURST + 5, LATE) == BURST
    assert told(5, LATE + REFILL_SECONDS * 0.9) == 0
    assert told(5, LATE + REFILL_SECONDS * 3) == 3
    assert told(BURST + 5, LATE + 1000 * REFILL_SECONDS) == BURST


def test_what_was_not_told_is_forgotten_as_well() -> None:
    teller = DriftTeller()
    for number in range(MOST_REMEMBERED + BURST + 5):
        teller.admit(_drift(f"c{number}"), LATE)
    assert len(teller._told_at) == BURST
    assert len(teller._untold) <= MOST_REMEMBERED
    assert teller.admit(_drift("c0"), LATE + 1) == ""


def test_a_drift_is_named_by_container_or_cgroup() -> None:
    one = ContainerAssignment(
        pod_uid="1", namespace="d", pod="p", container="c", cpus=CpuSet([1]), exclusive=True
    )
    assert str(_drift("a", one)).startswith("container d/p/c had cpus 0 instead of 1;")
