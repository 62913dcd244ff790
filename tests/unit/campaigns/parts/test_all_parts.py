"""Which parts are away because the run hit them, and which ended by themselves."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from numapin_campaigns.parts.all_parts import Parts
from numapin_campaigns.parts.part import Part
from numapin_lab.errors import LabError
from numapin_lab.processes.daemons import Daemon, kill


@dataclass
class Process:
    """A process that is asked for its pid; `asked` runs in between."""

    name: str
    runs: bool = True
    asked: Callable[[], object] = bool

    def pid(self) -> int | None:
        self.asked()
        return 1 if self.runs else None

    def start(self) -> object:
        self.runs = True
        return None

    def failure(self, what: str) -> LabError:
        return LabError(what)


@dataclass
class PlayedPart(Part):
    """A part without a real process."""

    daemon: Process

    def kill(self) -> bool:
        ran, self.daemon.runs = self.daemon.runs, False
        return ran

    def stop(self) -> bool:
        return self.daemon.runs

    def start(self) -> bool:
        self.daemon.start()
        return True


def played(*processes: Process) -> Parts:
    return Parts({one.name: PlayedPart(one) for one in processes})


def test_a_part_that_does_not_run_ended_by_itself() -> None:
    gone, there = Process("kubelet", runs=False), Process("containerd")
    parts = played(gone, there)
    assert parts.ended_by_themselves() == [gone]
    with pytest.raises(LabError, match="kubelet ended without being killed"):
        parts.check()


def test_a_part_that_the_run_killed_did_not_end_by_itself() -> None:
    parts = played(Process("kubelet"))
    parts.kill("kubelet")
    assert parts.ended_by_themselves() == []
    assert not parts.was_up("kubelet", 0)
    parts.start("kubelet")
    assert parts.is_starting("kubelet")
    parts.wait_all_ready()
    assert parts.ended_by_themselves() == []
    assert [(one.part, one.stopped) for one in parts.downtimes] == [("kubelet", False)]
    assert parts.kills == {"kubelet": 1}


def test_a_part_killed_during_the_check_did_not_end_by_itself() -> None:
    process = Process("containerd")
    parts = played(process)
    other = threading.Thread(target=parts.kill, args=("containerd",))

    def once() -> None:
        process.asked = bool
        other.start()
        # As long as a kill could take; there is none while the list is read.
        other.join(0.2)

    process.asked = once
    assert parts.ended_by_themselves() == []
    other.join()
    assert not process.runs


def test_downtimes_tell_whether_a_part_was_up() -> None:
    parts = played(Process("enforcer"), Process("operator"))
    parts.kill("operator")
    assert parts.was_up("enforcer", 0)
    parts.kill("enforcer")
    parts.start("enforcer")
    parts.wait_ready("enforcer")
    (down,) = parts.downtimes
    assert not parts.was_up("enforcer", down.killed_at)
    assert parts.was_up("enforcer", down.ready_at + 1)


def test_a_part_that_did_not_become_ready_stays_down() -> None:
    part = PlayedPart(Process("enforcer"), lambda _: False, says=lambda: "enforcement: not ok")
    parts = Parts({"enforcer": part})
    parts.kill("enforcer")
    parts.start("enforcer")
    with pytest.raises(LabError, match=r"(?s)for the enforcer to be ready.*: enforcement: not ok$"):
        parts.wait_ready("enforcer", 0.0)
    parts.look()
    assert parts.is_starting("enforcer")
    assert not parts.was_up("enforcer", 0)


def test_a_part_that_is_hit_again_before_it_is_back_was_away_once() -> None:
    parts = played(Process("enforcer"))
    parts.stop("enforcer")
    parts.start("enforcer")
    parts.kill("enforcer")
    assert not parts.is_starting("enforcer")
    parts.start("enforcer")
    parts.look()
    assert [one.stopped for one in parts.downtimes] == [True]


@pytest.fixture
def sleeping(tmp_path: Path) -> Iterator[Daemon]:
    """A real process."""
    daemon = Daemon("standby", tmp_path / "standby", ("sleep", "600"), tmp_path)
    daemon.start()
    yield daemon
    if (pid := daemon.pid()) is not None:
        kill(pid)


def test_a_process_is_killed_also_while_it_is_stopped(sleeping: Daemon) -> None:
    part = Part(sleeping)
    assert part.stop()
    assert part.kill()
    assert sleeping.pid() is None
    assert (part.stop(), part.kill()) == (False, False)
    assert part.start()
    part.wait_ready()
    assert part.stop()
    assert not part.start(), "it goes on"
