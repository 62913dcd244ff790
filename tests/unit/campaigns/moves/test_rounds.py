"""Rounds are made one after the other, and what goes wrong ends them and is a problem."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from numapin_campaigns.moves.node import Node, Watch
from numapin_campaigns.moves.plan import Change, Move, MovesPlan, Round, Stage
from numapin_campaigns.moves.rounds import GuestClock, Rounds
from numapin_campaigns.parts.guest import GuestParts
from numapin_lab.errors import LabError
from numapin_lab.vm.running_lab import RunningVmLab

PLAN = MovesPlan(1, tuple(Round(number, Move(number % 2), ()) for number in (1, 2, 3)))


@dataclass
class PlayedNode:
    """A node that does what it is asked for, or fails at one change."""

    fails_at: Change | None = None
    restarts_at: Change | None = None
    begun: list[Change] = field(default_factory=list)
    lab: Any = field(default_factory=lambda: SimpleNamespace(patience_seconds=60.0))

    def containers(self) -> dict[str, tuple[str, int]]:
        return {"told": ("id", int(self.restarts_at in self.begun))}

    def begin(self, change: Change) -> None:
        self.begun.append(change)

    def stage(self, assignment: object) -> Stage:
        assert assignment is None
        return Stage.DECIDED

    def wait_settled(self) -> None:
        if self.begun[-1] == self.fails_at:
            raise LabError("waited in vain")


class PlayedParts:
    """Parts that are ready at once."""

    def can_notice(self) -> bool:
        return True

    def kill(self, name: str) -> None:
        """Nothing is killed."""

    stop = start = kill

    def look(self) -> None:
        """None starts."""

    def wait_node_ready(self) -> None:
        """All are."""


def made(node: PlayedNode) -> tuple[Rounds, list[str]]:
    said: list[str] = []
    parts = cast("GuestParts", PlayedParts())
    clock = GuestClock(cast("RunningVmLab", SimpleNamespace(machine=lambda _: "100.5\n")))
    rounds = Rounds(cast("Node", node), parts, clock, said.append)
    rounds.make(PLAN, cast("Watch", SimpleNamespace(assignment=None)))
    return rounds, said


def test_each_round_is_made_and_said() -> None:
    rounds, said = made(PlayedNode())
    assert [one.change for one in rounds.made] == [Move(1), Move(0), Move(1)]
    assert rounds.problems == []
    assert said[1].startswith("chaos: round 2 of 3: move to NUMA node 0; nothing; ")


def test_a_round_that_does_not_come_to_its_end_ends_the_run_and_is_a_problem() -> None:
    node = PlayedNode(fails_at=Move(0))
    rounds, _ = made(node)
    assert node.begun == [Move(1), Move(0)]
    assert [one.number for one in rounds.made] == [1]
    assert rounds.problems == ["round 2 (move to NUMA node 0): waited in vain"]


def test_a_container_that_was_restarted_is_a_problem() -> None:
    rounds, _ = made(PlayedNode(restarts_at=Move(0)))
    assert [text.partition(":")[0] for text in rounds.problems] == ["round 2", "round 3"]


def test_a_time_is_converted_by_the_comparison_that_was_closest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times, uptimes = iter([10.0, 10.2, 50.0, 50.4]), iter(["110.1", "150.7"])
    monkeypatch.setattr("time.monotonic", lambda: next(times))
    lab = SimpleNamespace(machine=lambda _: next(uptimes))
    clock = GuestClock(cast("RunningVmLab", lab))
    assert [clock.now(), clock.now()] == [110.1, 150.7]
    assert clock.at(12.0) == pytest.approx(112.0)
    assert clock.at(49.0) == pytest.approx(149.5)
