"""Played enforcers say the same in both forms."""

from numapin_api.forms import report
from numapin_api.schema.plain import ContainerAssignment
from numapin_client.resources import Json
from numapin_lab.played.enforcers import slim
from numapin_lab.played.reports import report_of, status_of

LINES = ["d/a c cpus=2 since=1 uid=u-a", "d/b c cpus=3 since=2 uid=u-b", "d/s c since=2 uid=u-s"]


def latest() -> Json:
    pools = {"reservedCPUs": "0", "sharedCPUs": "0-1"}
    metadata = {"name": "n", "uid": "u1", "generation": 2}
    return slim({"metadata": metadata, "spec": {"pools": pools, "assigned": LINES}})


def read_back(running: set[str]) -> Json:
    """What the operator makes of the report."""
    entries = [ContainerAssignment.from_wire(one) for one in latest()["spec"]["containers"]]
    return report.status_of(report_of(latest(), running), "u1", 2, entries, (1, 2, 2))


def test_lines_are_kept_as_entries() -> None:
    kept = latest()
    assert kept["spec"]["pools"] == {"reserved": "0", "shared": "0-1"}
    assert [one["podUID"] for one in kept["spec"]["containers"]] == ["u-a", "u-b", "u-s"]


def test_a_report_says_what_a_status_says() -> None:
    running = {"u-a", "u-s"}
    status = status_of(latest(), running, ())
    found = read_back(running)
    assert found["running"] == status["running"] == ["u-a", "u-s"]
    assert found["observedGeneration"] == status["observedGeneration"] == 2
    assert found["pools"] == status["pools"]
    exclusive = [one["podUID"] for one in found["containers"] if one["exclusive"]]
    assert exclusive == [one["podUID"] for one in status["containers"]] == ["u-a"]


def test_a_report_names_what_does_not_run() -> None:
    assert report_of(latest(), {"u-b"})["notRunning"] == ["u-a", "u-s"]
    assert report_of(latest(), {"u-a", "u-b", "u-s"})["notRunning"] == []
