"""The loop: observe, enforce, follow, report. Woken by events; each pass enforces everything."""

import logging
import time
from dataclasses import dataclass, field
from typing import Final

from numapin_daemon.clock import Clock, SystemClock
from numapin_enforcer.followers.followers import Followers
from numapin_enforcer.node.heartbeat import Progress
from numapin_enforcer.passes.enforcing import Enforcing
from numapin_enforcer.passes.inputs import Inputs
from numapin_enforcer.passes.watched_pods import WatchedPods
from numapin_enforcer.schedule import Schedule
from numapin_enforcer.status.reporter import StatusReporter

LOG: Final = logging.getLogger(__name__)

SEARCH_SECONDS: Final = 0.5
"""How often to look for the kubelet's cgroups while there are none."""

RETRY_SECONDS: Final = 0.1
"""How soon to try again after a failed pass; doubles up to the time between two resyncs."""


@dataclass(eq=False)
class Agent:
    """Makes the node match its assignment, and reports what the kernel has."""

    inputs: Inputs
    pods: WatchedPods
    enforcing: Enforcing
    followers: Followers
    reporter: StatusReporter
    schedule: Schedule
    clock: Clock = field(default_factory=SystemClock)
    progress: Progress = field(default_factory=Progress)
    """Is told of each pass; a standby fences while passes do nothing."""

    async def run(self) -> None:
        """Make passes until cancelled; every pin stays in force then."""
        try:
            while True:
                began_seconds = time.thread_time()
                self._supervised_pass()
                spent_seconds = time.thread_time() - began_seconds
                self.schedule.note_work(spent_seconds, self.clock.monotonic())
                rest_seconds = self.schedule.rest_seconds(self.clock.monotonic())
                self.progress.expect(rest_seconds)
                await self.clock.sleep(rest_seconds)
                await self._wait()
        finally:
            self.pods.close()

    async def _wait(self) -> None:
        """Wait for an event, or until a pass is due; only meanwhile the kernel's wake the loop."""
        scheduled_seconds = self.schedule.wait_seconds(self.clock.monotonic())
        waits = [scheduled_seconds, *self.followers.recheck_seconds()]
        waits += self.inputs.recheck_seconds()
        if self.inputs.kubepods.tree is None:
            waits.append(SEARCH_SECONDS)
        self.progress.expect(min(waits))
        await self.pods.wait(min(waits))

    def _supervised_pass(self) -> None:
        """One pass. After an unexpected error the next one starts from nothing, as a restart would.

        The process goes on: its death would leave only the standby, which stands in now as well,
        until it has restarted, and the next process would fail alike.
        """
        try:
            self._pass()
        except Exception as error:
            LOG.exception("a pass failed unexpectedly, it will be retried")
            self.pods.close()
            self.schedule.note_unreadable()
            self.progress.passed(in_vain=True)
            self.reporter.failed(self.inputs.acceptance.judged, error)
        self.reporter.health.remark = self.progress.problem

    def _pass(self) -> None:
        began_seconds = self.clock.monotonic()
        full, failed = self.schedule.resync_due(began_seconds), self.schedule.failed_passes
        self._observe_node(full_resync=full)
        begun = self.inputs.begin(began_seconds, full_resync=full, failed_before=failed)
        self.followers.prepare(begun)
        one = self.enforcing.enforce(self.followers.known(begun))
        self.followers.follow(one)
        awaits_others = self.followers.awaits_others(one)
        names_complete = not self.followers.containers.unnamed
        self.enforcing.end(one, names_complete=names_complete, awaits_others=awaits_others)
        if one.unreadable is not None:
            self.schedule.note_unreadable()
        else:
            complete = one.result.settled and not awaits_others
            self.schedule.note_pass(began_seconds, resynced=full, complete=complete)
        states = {**self.inputs.states(), **self.followers.states()}
        self.reporter.report(one, self.followers.facts(one, self.inputs.facts()), states)
        self.inputs.kubelet.log_conflict()
        self.reporter.count(one, ended_seconds=self.clock.monotonic())
        self.progress.passed(in_vain=one.in_vain)

    def _observe_node(self, *, full_resync: bool) -> None:
        self.inputs.observe(full_resync=full_resync)
        if full_resync:
            outdated = self.inputs.kubelet.outdated() or self.followers.containers.names.outdated
            self.reporter.health.outdated = outdated
            if self.inputs.kubepods.moved():
                self.pods.close()
                self.inputs.note_driver_change()
        self.inputs.accept()
