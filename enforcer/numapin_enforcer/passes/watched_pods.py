"""The kubelet's cgroups while they are there: their tree, its events and its reconciler."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from numapin_daemon.clock import Clock
from numapin_enforcer.cgroups.kubepods.finder import KubepodsFinder, PodTree
from numapin_enforcer.cgroups.memory.writes_during_moves import MoveGate, PatientFiles
from numapin_enforcer.cgroups.watch.event_reader import EventReader
from numapin_enforcer.reconciler import MOST_CHECKS, Reconciler
from numapin_enforcer.schedule import Schedule

LOG: Final = logging.getLogger(__name__)

SETTLE_SECONDS: Final = 0.002
"""How long a pass waits for the runtime that sets up a new cgroup, which has been fenced already.

A pass takes longer than a fence. What comes during a pass is only fenced after it.
"""


@dataclass(eq=False)
class WatchedPods:
    """Opens the tree of the kubelet's cgroups, and wakes the loop at its events.

    Attributes:
        kubepods: finds the tree.
        gate: says whether memory is being moved.
        names: returns container id to name, as the runtime lists them.
        wake: set at each event that matters.
        schedule: gets the CPU time of reads, and says how long to rest after one in vain.
        clock: the time.
    """

    kubepods: KubepodsFinder
    gate: MoveGate
    names: Callable[[], Mapping[str, str]]
    wake: asyncio.Event
    schedule: Schedule
    clock: Clock
    _events: EventReader | None = field(default=None, init=False)
    """Set while there is a tree to watch."""
    _reconciler: Reconciler | None = field(default=None, init=False)
    _thread: int = field(default=0, init=False)
    """The thread of the loop, in which passes are made."""
    _is_fencing: bool = field(default=False, init=False)
    _settling: asyncio.TimerHandle | None = field(default=None, init=False)
    """Set while only new cgroups, all of them fenced, call for a pass."""

    def open(self) -> PodTree | None:
        """The tree; None while there is none."""
        if self.kubepods.tree is not None:
            return self.kubepods.tree
        opened = self.kubepods.open()
        if opened is not None:
            loop = asyncio.get_running_loop()
            work = (self._note_events, self._rest_after_vain_read)
            self._events = EventReader(loop, opened.watch, *work)
            loop.add_reader(opened.new_pods.fileno(), self._note_new_pods)
            opened.files.between_reads, self._thread = self._fence_pods, threading.get_ident()
            LOG.info("found the kubelet's cgroups", extra={"root": opened.naming.root})
        return opened

    def close(self) -> None:
        """Forget the tree and all that was known of it."""
        self.pause()
        self._events = None
        if self.kubepods.tree is not None:
            asyncio.get_running_loop().remove_reader(self.kubepods.tree.new_pods.fileno())
            self.kubepods.close()
            self._reconciler = None

    def listen(self) -> None:
        """Let events wake the loop."""
        if self._events is not None:
            self._events.listen()

    async def wait(self, seconds: float) -> None:
        """Wait for an event, for so many seconds at most; only meanwhile the kernel's wake."""
        self.listen()
        await self.clock.wait(self.wake, seconds)
        self.wake.clear()
        self.pause()

    def pause(self) -> None:
        """Leave events to the kernel."""
        if self._settling is not None:
            self._settling.cancel()
            self._settling = None
        if self._events is not None:
            self._events.pause()

    def reconciler(self, pods: PodTree) -> Reconciler:
        """The reconciler of the tree, which is the one that is open."""
        if self._reconciler is None:
            files = PatientFiles(pods.files, self.gate)
            self._reconciler = Reconciler(files, pods.snapshot, pods.naming, MOST_CHECKS)
            self._reconciler.between = self._fence_pods
        return self._reconciler

    def _note_new_pods(self) -> None:
        """Keep new pods off exclusive CPUs, also while no other event is read; plan for none.

        Their events are in the queue of the other watch too, which calls for the pass.
        """
        began_seconds = time.thread_time()
        self._take_new_pods()
        self.schedule.note_work(time.thread_time() - began_seconds, self.clock.monotonic())

    def _fence_pods(self) -> None:
        """The same in the middle of a pass."""
        if threading.get_ident() != self._thread or self._is_fencing:
            return  # in the thread that moves memory, or in a read of the fence itself
        if self._reconciler is not None and self._reconciler.first_writes.is_armed:
            self._is_fencing = True
            self._take_new_pods()
            self._is_fencing = False

    def _take_new_pods(self) -> None:
        if self.kubepods.tree is not None:
            paths = self.kubepods.tree.new_pods.take()
            if self._reconciler is not None:
                self._reconciler.first_writes.fence_pods(paths)

    def _note_events(self, spent_seconds: float) -> None:
        """Keep new cgroups off exclusive CPUs, and let the loop plan for them at once or soon.

        Args:
            spent_seconds: the CPU time of the read. It makes the rest after the next pass longer.
        """
        began_seconds = time.thread_time()
        if self._fence_new():
            self._settle()
        else:
            self.wake.set()
        spent_seconds += time.thread_time() - began_seconds
        self.schedule.note_work(spent_seconds, self.clock.monotonic())

    def _fence_new(self) -> bool:
        """Whether nothing but new cgroups, all of them fenced now, calls for a pass."""
        if self._reconciler is None or self.kubepods.tree is None:
            return False
        return self._reconciler.first_writes.fence_new(
            self.kubepods.tree.watch.collected, self.names()
        )

    def _settle(self) -> None:
        """Plan `SETTLE_SECONDS` after the first of these events; fence what comes meanwhile."""
        if self._settling is None:
            loop = asyncio.get_running_loop()
            self._settling = loop.call_later(SETTLE_SECONDS, self.wake.set)
        self.listen()

    def _rest_after_vain_read(self, spent_seconds: float) -> float:
        """Note a read in which no event mattered; return how long to read none."""
        self.schedule.note_vain_read(spent_seconds, self.clock.monotonic())
        return self.schedule.vain_rest_seconds(self.clock.monotonic())
