"""Who is away because the run killed it, and who ended by itself."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from numapin_campaigns.faults.downtimes import Downtimes
from numapin_lab.errors import LabError


@dataclass
class Part:
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


def test_a_part_that_does_not_run_ended_by_itself() -> None:
    gone, there = Part("kubelet", runs=False), Part("containerd")
    downtimes = Downtimes({"kubelet": gone, "containerd": there})
    assert downtimes.ended_by_themselves() == [gone]


def test_a_part_that_the_run_killed_did_not_end_by_itself() -> None:
    part = Part("kubelet")
    downtimes = Downtimes({"kubelet": part})
    with downtimes.down("kubelet"):
        part.runs = False
        assert downtimes.ended_by_themselves() == []
        assert not downtimes.was_up("kubelet", 0)
        part.start()
    assert downtimes.ended_by_themselves() == []
    assert [one.part for one in downtimes.completed] == ["kubelet"]
    assert downtimes.kills == {"kubelet": 1}


def test_a_part_killed_during_the_check_did_not_end_by_itself() -> None:
    part = Part("containerd")
    downtimes = Downtimes({"containerd": part})
    taken, over = threading.Event(), threading.Event()

    def take_away() -> None:
        with downtimes.down("containerd"):
            part.runs = False
            taken.set()
            assert over.wait(30)

    other = threading.Thread(target=take_away)

    def once() -> None:
        part.asked = bool
        other.start()
        # As long as a removal could take; there is none while the list is read.
        taken.wait(0.2)

    part.asked = once
    try:
        assert downtimes.ended_by_themselves() == []
    finally:
        over.set()
        other.join()


def test_downtimes_tell_whether_a_part_was_up() -> None:
    downtimes = Downtimes({"enforcer": Part("enforcer"), "operator": Part("operator")})
    with downtimes.down("operator"):
        pass
    assert downtimes.was_up("enforcer", 0)
    with downtimes.down("enforcer"):
        pass
    down = downtimes.completed[-1]
    assert not downtimes.was_up("enforcer", down.killed_at)
    assert downtimes.was_up("enforcer", down.ready_at + 1)


def test_a_part_that_did_not_become_ready_stays_down() -> None:
    downtimes = Downtimes({"enforcer": Part("enforcer")})
    with pytest.raises(LabError), downtimes.down("enforcer"):
        raise LabError("it did not come back")
    assert not downtimes.was_up("enforcer", 0)
