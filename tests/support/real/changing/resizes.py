"""Containers that are resized on a node with two CPUs, one of them reserved."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations

from numapin_api.cpuset import CpuSet
from numapin_campaigns.recording.recording import Recording, recording
from numapin_campaigns.recording.sharing import seconds_shared_each_time
from numapin_lab.running_lab import BUSY, RunningLab, eventually, pod, policy

OWN, SHARED = CpuSet.parse("1"), CpuSet.parse("0")


def pin_owner(lab: RunningLab) -> None:
    """Let `owner` have CPU 1 to itself, and `neighbour` the other one; both are busy."""
    lab.apply(policy(), pod("owner", BUSY, cpu="1"), pod("neighbour", BUSY))
    lab.wait_running("owner", "neighbour")
    eventually(lab.reported_exclusive, [True])
    eventually(lambda: lab.allowed("neighbour"), SHARED)


def restarts(lab: RunningLab, *names: str) -> list[int]:
    return [lab.pod(name)["status"]["containerStatuses"][0]["restartCount"] for name in names]


@contextmanager
def never_shared(lab: RunningLab, *names: str) -> Iterator[Recording]:
    """At no moment is a set empty, or one container on the CPU that another has to itself.

    One sample reads cgroup after cgroup, so what lasts no longer than between two samples is none.
    """
    ids = [lab.container_id(name) for name in names]
    with recording(lab.kubepods) as record:
        yield record
    longest = record.quality["longestGapSeconds"]
    assert all(one.cpus for each in ids for one in record.groups[each])
    for one, other in permutations(ids, 2):
        both = record.groups[one], record.groups[other]
        assert max(seconds_shared_each_time(*both, OWN), default=0.0) <= longest, both
    assert restarts(lab, *names) == [0] * len(names)
    assert [lab.container_id(name) for name in names] == ids
    assert record.quality["samples"] > 100
