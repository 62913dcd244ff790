"""Make the rounds of a chaos run with moves, one after the other."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from numapin_campaigns.frame.observe import until_answered
from numapin_campaigns.moves.node import Node, Watch
from numapin_campaigns.moves.plan import MovesPlan, Round
from numapin_campaigns.moves.report import MadeRound
from numapin_campaigns.moves.schedule import Action, Do, Schedule
from numapin_campaigns.parts.guest import GuestParts
from numapin_lab.components.build import Say
from numapin_lab.errors import LabError
from numapin_lab.vm.running_lab import RunningVmLab

TICK_SECONDS: Final = 0.1


@dataclass
class GuestClock:
    """The clock that the workloads of a virtual machine have."""

    lab: RunningVmLab
    _measured: list[tuple[float, float]] = field(default_factory=list)

    def now(self) -> float:
        """Its present time; this compares it with the clock of this machine."""
        asked_at = time.monotonic()
        guest = float(self.lab.machine("cut -d ' ' -f 1 /proc/uptime"))
        now = time.monotonic()
        self._measured.append((now, guest - (asked_at + now) / 2))
        return guest

    def at(self, host: float) -> float:
        """Its time at a time of this machine, by the comparison that was closest."""
        _, offset = min(self._measured, key=lambda one: abs(one[0] - host))
        return host + offset


@dataclass
class Rounds:
    """Makes rounds; `made` are those that came to their end, `problems` what was wrong."""

    node: Node
    parts: GuestParts
    clock: GuestClock
    progress: Say
    made: list[MadeRound] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def make(self, plan: MovesPlan, watch: Watch) -> None:
        """Make all rounds, or up to one that does not come to its end."""
        containers = self.node.containers()
        for one in plan.rounds:
            began = time.monotonic()
            try:
                made = self._make(one, watch)
            except LabError as error:
                self.problems.append(f"round {one.number} ({one.change}): {error}")
                return
            finally:
                self._compare(one, containers)
            self.made.append(made)
            hit = ", ".join(f"{fault} at {stage.name}" for fault, stage in made.faults) or "nothing"
            seconds = time.monotonic() - began
            text = f"round {one.number} of {len(plan.rounds)}: {one.change}; {hit}; {seconds:.0f} s"
            self.progress(f"chaos: {text}")

    def _compare(self, one: Round, before: Mapping[str, tuple[str, int]]) -> None:
        """Note if a container is not the one that it was."""
        missing: dict[str, tuple[str, int]] = {}
        try:
            now = until_answered(self.node.containers, missing)
        except LabError as error:
            self.problems.append(f"round {one.number}: the containers cannot be read: {error}")
            return
        if now != before:
            self.problems.append(f"round {one.number}: the containers were {before}, now {now}")

    def _make(self, one: Round, watch: Watch) -> MadeRound:
        """Make one round; returns when the node is as it was asked for."""
        began, schedule = self.clock.now(), Schedule(one.faults)
        deadline = time.monotonic() + self.node.lab.patience_seconds
        self.node.begin(one.change)
        while not schedule.done:
            stage = self.node.stage(watch.assignment)
            can_notice = self.parts.can_notice
            for action in schedule.take_due(time.monotonic(), stage, can_notice):
                self._act(action)
                if action.do is not Do.START:
                    schedule.note_hit(action.part, time.monotonic())
            self.parts.look()
            if time.monotonic() > deadline:
                raise LabError(f"a fault waits in vain: the change is at {stage.name}")
            time.sleep(TICK_SECONDS)
        self.parts.wait_node_ready()
        self.node.wait_settled()
        return MadeRound(one.number, one.change, tuple(schedule.made), began, self.clock.now())

    def _act(self, action: Action) -> None:
        """Do it; returns when it is done, though not until a part is ready."""
        do = {Do.KILL: self.parts.kill, Do.STOP: self.parts.stop, Do.START: self.parts.start}
        do[action.do](action.part)
