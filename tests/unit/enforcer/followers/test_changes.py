"""External changes are counted, named and posted."""

import asyncio
from dataclasses import replace

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.followers.changes import Changes
from numapin_enforcer.pass_values import Converged, Pass
from numapin_enforcer.plan.drift import Drift
from numapin_enforcer.runtime.updates.updater import RuntimeUpdater
from numapin_enforcer.status.events.other_writers import OFTEN, RUN_SECONDS
from support.fakes.manual_clock import ManualClock
from support.fakes.runtime import FakeRuntime
from support.fakes.worlds.follower_parts import Posted
from support.values.specs_and_trees import NAMING, POD, machine

BODY = {"metadata": {"name": "n", "uid": "u1"}, "status": {"driftCount": 7}}
MEMS = MemSet((0,))
DRIFT = Drift(POD, (CpuSet((0,)), MEMS), (CpuSet((3,)), MEMS))


class World:
    """Passes that reverted an external change of one cgroup."""

    def __init__(self) -> None:
        self.clock, self.posted = ManualClock(), Posted()
        updater = RuntimeUpdater(FakeRuntime(), asyncio.Event(), self.clock)
        self.changes = Changes(updater, self.posted, self.clock)
        self.one = Pass(began_seconds=0.0, topology=machine(), naming=NAMING, body=BODY)

    def revert(self, *drifts: Drift) -> None:
        self.changes.follow(replace(self.one, result=Converged(drifts=drifts)))


def test_a_program_that_keeps_changing_a_cgroup_is_named() -> None:
    world = World()
    for _ in range(OFTEN):
        world.revert(DRIFT)
        world.clock.stand_still(1)
    posted = [(one.reason, "changed 10 times in 9 s" in one.note) for one in world.posted.events]
    assert posted == [("AnotherWriter", True)]
    assert "was changed 10 times in 9 s" in world.changes.state().note
    world.clock.stand_still(RUN_SECONDS)
    assert world.changes.state().note == ""


def test_drifts_are_counted_on_from_the_last_status() -> None:
    world = World()
    world.revert()
    assert world.changes.count.total == 7
    world.revert(DRIFT)
    assert world.changes.count.total == 8
    assert world.posted.drifts == [DRIFT]
