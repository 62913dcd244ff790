"""What a recording of cgroup changes says, and how long two containers shared a CPU."""

import json

import pytest

from numapin_api.cpuset import CpuSet
from numapin_campaigns.recording.recording import Change, Recording, seconds_shared

OWN = CpuSet.parse("1")


def changes(*rows: tuple[float, str, bool]) -> list[Change]:
    return [Change(at, CpuSet.parse(cpus), runs) for at, cpus, runs in rows]


@pytest.mark.parametrize(
    ("owner", "other", "seconds"),
    [
        pytest.param(
            [(5, "0-1", False), (6, "1", True)],
            [(1, "0-1", True), (8.5, "0", True)],
            2.5,
            id="the other leaves late",
        ),
        pytest.param(
            [(5, "1", False), (6, "1", True)],
            [(1, "0-1", True), (5.5, "0", True)],
            0,
            id="it leaves before the exclusive container has a process",
        ),
        pytest.param(
            [(5, "0-1", True), (6, "1", True)],
            [(1, "0", True)],
            0,
            id="another CPU than the container's does not count",
        ),
        pytest.param(
            [(1, "1", True), (4, "", False)],
            [(2, "1", False), (3, "1", True), (9, "", False)],
            1,
            id="two exclusive containers, until the first ends",
        ),
        pytest.param(
            [(1, "1", True), (9, "", False)],
            [(2, "1", True), (3, "0", True), (5, "0-1", True), (6, "0", True)],
            2,
            id="twice",
        ),
    ],
)
def test_shared_time_is_when_both_may_run_on_the_exclusive_cpus(
    owner: list[tuple[float, str, bool]], other: list[tuple[float, str, bool]], seconds: float
) -> None:
    assert seconds_shared(changes(*owner), changes(*other), OWN) == seconds


def test_a_recording_holds_the_changes_of_each_cgroup() -> None:
    record = Recording()
    rows: list[object] = [
        [1.0, "besteffort/podu/c", "0-1", False],
        [2.0, "besteffort/podu/c", "0", True],
        [3.0, "besteffort/podu/c", None, False],
        {"samples": 9, "longestGapSeconds": 0.002},
    ]
    record.take(map(json.dumps, rows))
    assert record.first("c", lambda one: one.cpus == CpuSet.parse("0")) == 2.0
    assert record.state("c") == Change(3.0, CpuSet(), runs=False)
    assert record.state("d") is None
    assert record.quality["samples"] == 9
