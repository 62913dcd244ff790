"""What a lab has left is seen, and what is not the lab's is not."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from numapin_lab import leftovers
from numapin_lab.leftovers import HOST_PATHS, Traces, host_paths
from numapin_lab.processes.daemons import MARK
from numapin_lab.state import LabState


@pytest.fixture
def traces(tmp_path: Path) -> Traces:
    return Traces.of(tmp_path, LabState.new({}), host_paths())


@pytest.fixture
def process(tmp_path: Path) -> Iterator[int]:
    """A process of the lab that still runs."""
    environment = {**os.environ, MARK: str(tmp_path)}
    with subprocess.Popen(["sleep", "1000"], env=environment) as started:
        yield started.pid
        started.kill()


def test_a_lab_of_which_only_logs_stay_has_left_nothing(traces: Traces, tmp_path: Path) -> None:
    for name in ("kubelet/log", "lock"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert traces.left() == []


def test_a_process_that_still_runs_is_named(traces: Traces, process: int) -> None:
    assert traces.left() == [f"process {process}: sleep 1000"]


def test_a_file_that_is_still_there_is_named(traces: Traces, tmp_path: Path) -> None:
    (tmp_path / "etcd" / "data").mkdir(parents=True)
    (tmp_path / "etcd" / "data" / "wal").touch()
    assert traces.left() == [f"file {tmp_path / 'etcd/data/wal'}"]


def test_a_process_in_a_namespace_of_the_node_is_named(traces: Traces, process: int) -> None:
    own = str(Path("/proc/self/ns/net").readlink())
    found = Traces(traces.folder, traces.state, traces.before, frozenset({own})).left()
    assert f"process {process} in namespace {own}" in found


def test_a_folder_of_a_node_that_was_not_there_before_is_named(
    traces: Traces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "var-lib-numapin"
    monkeypatch.setattr(leftovers, "HOST_PATHS", (*HOST_PATHS, str(made)))
    made.mkdir()
    assert traces.left() == [f"file {made}"]
