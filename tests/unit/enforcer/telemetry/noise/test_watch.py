"""When exclusive CPUs are looked at for the status, and when a pass is made because of it."""

import asyncio
from dataclasses import dataclass, field

import pytest

from numapin_api.cpuset import CpuSet
from numapin_daemon.clock import SystemClock
from numapin_enforcer.pass_values import Converged
from numapin_enforcer.telemetry.noise import watch
from numapin_enforcer.telemetry.noise.look import Look, Looker
from numapin_enforcer.telemetry.noise.tasks import Tasks
from numapin_enforcer.telemetry.noise.watch import NoiseWatch
from support.real.waiting import eventually
from support.values.telemetry.kernel_rows import interrupt


@dataclass(frozen=True)
class Interrupted(Looker):
    """An interrupt comes a thousand times between two looks."""

    counters: object = None  # type: ignore[assignment]
    tasks: object = None  # type: ignore[assignment]
    looks: list[Converged] = field(default_factory=list)

    def look(self, last: Converged) -> Look:
        self.looks.append(last)
        came = interrupt("24", "eth0", {4: 1000 * len(self.looks)})
        return Look((), CpuSet((4,)), Tasks((), complete=True), (came,))


async def test_it_wakes_the_loop_once_for_what_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LOOK_SECONDS", 0.01)
    looker, wakes = Interrupted(), list[int]()
    seen = NoiseWatch(looker, lambda: wakes.append(len(looker.looks)), SystemClock())
    task = asyncio.create_task(seen.run())
    await eventually(lambda: len(looker.looks) >= 6, "six looks")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert wakes == [3]
    assert [one.name for one in seen.found] == ["eth0"]
