"""External changes are counted, named and posted."""

import asyncio
from dataclasses import replace

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.followers.changes import Changes, DriftCount
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
INTRUSION = replace(DRIFT, exclusive_cpus=CpuSet((0,)))


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


def _body(status: dict[str, object], uid: str = "1") -> dict[str, object]:
    """A NodeAssignment."""
    return {"metadata": {"uid": uid}, "status": status}


def test_drifts_are_counted_by_cause_and_across_restarts() -> None:
    count = DriftCount()
    assert (count.total, count.causes) == (0, {})
    count.add(DRIFT.cause)
    count.add(INTRUSION.cause)
    count.resume(_body({"driftCount": 2, "driftCauses": {"Strayed": 1, "Intrusion": 1}}))
    assert (count.total, count.causes) == (2, {"Intrusion": 1, "Strayed": 1})
    again = DriftCount()
    again.add(DRIFT.cause)
    for _ in range(2):
        again.resume(_body({"driftCount": 6, "driftCauses": {"Strayed": 4, "Memory": 1}}))
        assert (again.total, again.causes) == (6, {"Memory": 1, "Strayed": 4})
    again.add(DRIFT.cause)
    again.resume(_body({"driftCount": 6, "driftCauses": {"Strayed": 4, "Memory": 1}}))
    assert (again.total, again.causes) == (7, {"Memory": 1, "Strayed": 5})
    again.resume(_body({}))
    assert again.total == 7


def test_the_count_continues_if_the_api_server_drops_the_causes() -> None:
    count = DriftCount()
    for number in range(1, 4):
        count.add(DRIFT.cause)
        count.resume(_body({"driftCount": number}))
        assert (count.total, count.causes) == (number, {"Strayed": number})


def test_a_new_assignment_starts_at_zero() -> None:
    count = DriftCount()
    count.add(DRIFT.cause)
    count.resume(_body({"driftCount": 4, "driftCauses": {"Strayed": 3}}))
    count.resume(_body({}, uid="2"))
    assert (count.total, count.causes) == (0, {})
    count.add(DRIFT.cause)
    count.resume({"metadata": {"uid": "2"}})
    assert (count.total, count.causes) == (1, {"Strayed": 1})
