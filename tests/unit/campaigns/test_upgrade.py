"""What the recording of a run that replaces parts says."""

from numapin_api.cpuset import CpuSet
from numapin_campaigns.recording.recording import Change
from numapin_campaigns.upgrade import violations


def test_other_cpus_than_its_own_are_a_violation() -> None:
    right, wrong = Change(1.0, CpuSet([0]), True), Change(2.5, CpuSet([0, 1]), True)
    assert list(violations({"owner": [], "neighbour": [right]})) == []
    assert list(violations({"owner": [], "neighbour": [right, wrong]})) == [
        {"container": "neighbour", "had": "0-1", "at": 2.5}
    ]
