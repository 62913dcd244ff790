"""Which CPUs the runtime may still write, and what is sent again because of that."""

import asyncio

from numapin_enforcer.runtime.updates.updater import RuntimeUpdater
from support.fakes.manual_clock import ManualClock
from support.fakes.runtime import FakeRuntime
from support.values.runtime import AWAY, ONE, REFUSED, TWO

BACKOFF_SECONDS = 0.5


async def test_cpus_are_stale_until_the_update_is_acknowledged(
    updater: RuntimeUpdater, runtime: FakeRuntime, clock: ManualClock, wake: asyncio.Event
) -> None:
    updater.want({"c1": ONE})
    await clock.run_tasks()
    assert (updater.stale_cpus, wake.is_set()) == ({}, False)
    runtime.may_update.clear()
    updater.want({"c1": TWO})
    assert updater.stale_cpus == {"c1": ONE.cpus}
    await clock.run_tasks()
    assert updater.sent("c1") == TWO
    assert updater.stale_cpus == {"c1": ONE.cpus | TWO.cpus}
    runtime.failure = REFUSED
    runtime.may_update.set()
    await clock.run_tasks()
    assert wake.is_set()
    assert updater.stale_cpus == {"c1": ONE.cpus | TWO.cpus}
    wake.clear()
    runtime.failure = None
    await clock.advance(BACKOFF_SECONDS)
    assert wake.is_set()
    assert updater.stale_cpus == {}


async def test_an_update_in_flight_is_stale_when_something_else_is_wanted(
    updater: RuntimeUpdater, runtime: FakeRuntime, clock: ManualClock, wake: asyncio.Event
) -> None:
    runtime.may_update.clear()
    updater.want({"c1": ONE})
    await clock.run_tasks()
    updater.want({"c1": TWO})
    assert updater.stale_cpus == {"c1": ONE.cpus}
    runtime.may_update.set()
    await clock.run_tasks()
    assert wake.is_set()
    assert (updater.stale_cpus, runtime.updates) == ({}, [("c1", ONE), ("c1", TWO)])


async def test_what_was_acknowledged_is_sent_again_if_it_is_wanted_during_another_update(
    updater: RuntimeUpdater, runtime: FakeRuntime, clock: ManualClock
) -> None:
    updater.want({"c1": ONE})
    await clock.run_tasks()
    runtime.may_update.clear()
    updater.want({"c1": TWO})
    await clock.run_tasks()
    updater.want({"c1": ONE})
    runtime.may_update.set()
    await clock.run_tasks()
    assert runtime.updates == [("c1", ONE), ("c1", TWO), ("c1", ONE)]
    assert updater.stale_cpus == {}


async def test_what_was_acknowledged_is_sent_again_if_it_is_wanted_after_a_failed_update(
    updater: RuntimeUpdater, runtime: FakeRuntime, clock: ManualClock
) -> None:
    """The failed update may have been done in part."""
    updater.want({"c1": ONE})
    await clock.run_tasks()
    runtime.refuse["c1"] = REFUSED
    updater.want({"c1": TWO})
    await clock.run_tasks()
    assert updater.problem is REFUSED
    runtime.refuse.clear()
    updater.want({"c1": ONE})
    await clock.advance(BACKOFF_SECONDS)
    assert runtime.updates == [("c1", ONE), ("c1", ONE)]
    assert updater.stale_cpus == {}
    assert not updater.obstacles()


async def test_a_failure_counts_no_more_once_what_was_acknowledged_is_wanted_again(
    updater: RuntimeUpdater, runtime: FakeRuntime, clock: ManualClock
) -> None:
    updater.want({"c1": ONE})
    await clock.run_tasks()
    runtime.failure = AWAY
    updater.want({"c1": TWO})
    await clock.run_tasks()
    assert updater.problem is AWAY
    updater.want({"c1": ONE})
    assert updater.problem is None


async def test_an_external_change_is_stale_until_the_resources_were_sent_again(
    updater: RuntimeUpdater, runtime: FakeRuntime, clock: ManualClock, wake: asyncio.Event
) -> None:
    updater.want({"c1": ONE})
    await clock.run_tasks()
    updater.note_external_change("c1", TWO.cpus)
    updater.want({"c1": ONE})
    assert updater.stale_cpus == {"c1": TWO.cpus | ONE.cpus}
    await clock.run_tasks()
    assert wake.is_set()
    assert (updater.stale_cpus, runtime.updates) == ({}, [("c1", ONE), ("c1", ONE)])


async def test_an_external_change_during_an_update_is_followed_by_another_update(
    updater: RuntimeUpdater, runtime: FakeRuntime, clock: ManualClock, wake: asyncio.Event
) -> None:
    """It is not known which of the two changes the runtime has."""
    runtime.may_update.clear()
    updater.want({"c1": ONE})
    await clock.run_tasks()
    updater.note_external_change("c1", TWO.cpus)
    runtime.may_update.set()
    await clock.run_tasks()
    assert wake.is_set()
    assert (updater.stale_cpus, runtime.updates) == ({}, [("c1", ONE), ("c1", ONE)])


async def test_an_external_change_of_a_container_that_was_never_updated_is_ignored(
    updater: RuntimeUpdater, runtime: FakeRuntime, clock: ManualClock
) -> None:
    updater.note_external_change("c1", TWO.cpus)
    updater.want({})
    await clock.run_tasks()
    assert (updater.stale_cpus, runtime.asked) == ({}, [])


async def test_what_an_earlier_process_sent_is_stale_until_the_container_is_updated(
    updater: RuntimeUpdater, runtime: FakeRuntime, clock: ManualClock, wake: asyncio.Event
) -> None:
    updater.want({"c1": TWO}, {"c1": ONE})
    assert updater.stale_cpus == {"c1": ONE.cpus}
    await clock.run_tasks()
    assert wake.is_set()
    assert (updater.stale_cpus, runtime.updates) == ({}, [("c1", TWO)])
    updater.want({"c1": TWO}, {"c1": ONE})
    assert updater.stale_cpus == {}


async def test_what_an_earlier_process_sent_is_sent_again_though_it_is_the_same(
    updater: RuntimeUpdater, runtime: FakeRuntime, clock: ManualClock
) -> None:
    """The earlier process may have ended before it sent it."""
    updater.want({"c1": ONE}, {"c1": ONE})
    assert updater.stale_cpus == {}
    await clock.run_tasks()
    assert runtime.updates == [("c1", ONE)]


async def test_a_paused_updater_sends_nothing_and_keeps_what_it_knows(
    updater: RuntimeUpdater, runtime: FakeRuntime, clock: ManualClock
) -> None:
    updater.want({"c1": ONE})
    await clock.run_tasks()
    runtime.failure = REFUSED
    runtime.may_list.clear()
    updater.want({"c1": TWO})
    await clock.run_tasks()
    updater.pause()
    runtime.may_list.set()
    await clock.advance(60)
    assert updater.problem is None
    runtime.failure = None
    updater.want({"c1": ONE})
    await clock.advance(60)
    assert runtime.updates == [("c1", ONE)]


async def test_an_update_that_is_acknowledged_while_paused_is_stale_later(
    updater: RuntimeUpdater, runtime: FakeRuntime, clock: ManualClock
) -> None:
    runtime.may_update.clear()
    updater.want({"c1": ONE})
    await clock.run_tasks()
    updater.pause()
    runtime.may_update.set()
    await clock.run_tasks()
    assert updater.stale_cpus == {}
    updater.want({"c1": TWO})
    assert updater.stale_cpus == {"c1": ONE.cpus}
