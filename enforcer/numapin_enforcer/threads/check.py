"""Finds threads that may use more CPUs than their cgroup, or that were started with fewer.

Does no I/O itself.
"""

import logging
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from numapin_api.quantity import plural
from numapin_daemon.clock import Clock, SystemClock
from numapin_enforcer.cgroups.naming import CgroupNaming
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.plan.containment import Desired, in_containers
from numapin_enforcer.plan.desired import exclusive_cpus
from numapin_enforcer.threads.findings import InheritedMask, WideThreads
from numapin_enforcer.threads.inherited import InheritedMasks
from numapin_enforcer.threads.repeated import RepeatedThreads
from numapin_enforcer.threads.survey import Survey, Threads

LOG: Final = logging.getLogger(__name__)

LEAST_SECONDS: Final = 10.0
"""How long after a look the first exclusive CPU of a node leads to no new one before a resync."""

IDLE_SECONDS: Final = 60.0
"""How long after a look a resync leads to the next one while no CPU is exclusive."""

MOST_AT_ONCE: Final = 8
"""Of how many cgroups the set may be written again in one pass."""


class ThreadCheck:
    """The threads of all containers of one node, compared with their cgroups.

    The kernel keeps a thread inside the CPUs of its cgroup, but not those that io_uring makes:
    a worker (`iou-wrk-`) gets the CPUs that the process had when it opened its first ring, a
    polling thread (`iou-sqp-`) all that are online. Source: Linux, io_uring/io-wq.c,
    `io_wq_create` and `io_init_new_worker`; io_uring/sqpoll.c, `io_sq_thread`.
    """

    def __init__(self, threads: Threads, clock: Clock | None = None) -> None:
        self._threads, self._survey = threads, Survey(threads)
        self._clock = clock or SystemClock()
        self._repeated, self._inherited = RepeatedThreads(), InheritedMasks(threads)
        self._is_on, self._looked_seconds = False, -LEAST_SECONDS
        self._idle_seconds = self._clock.monotonic()
        self._written: tuple[WideThreads, ...] = ()

    def look(
        self, tree: Tree, wanted: Mapping[str, Desired], naming: CgroupNaming, *, resynced: bool
    ) -> tuple[str, ...]:
        """Look at some threads, at each resync and once the first CPUs become exclusive.

        While no CPU is exclusive, at a resync a minute after the last look.

        Returns:
            Cgroups whose set must be written again, because their threads may use exclusive CPUs of
            others. Call `look_again` after that.
        """
        exclusive = exclusive_cpus(wanted.values())
        was_on, self._is_on = self._is_on, bool(exclusive)
        now_seconds = self._clock.monotonic()
        if not self._is_due(now_seconds, was_on=was_on, resynced=resynced):
            return ()
        if self._is_on:
            self._looked_seconds = now_seconds
        self._idle_seconds = now_seconds
        paths = sorted(in_containers(tree, naming))
        found = self._survey.look(paths, lambda path: tree.cgroups[path].effective_cpus.mask)
        self._inherited.update(found, tree, naming)
        if not self._is_on:
            return ()
        self._repeated.forget_except(tree.cgroups.keys())
        for path in found.clean:
            self._repeated.note_clean(path, now_seconds)
        due = [one for one in found.wide if self._repeated.note_wide(one, now_seconds)]
        harmful = (one for one in due if one.cpus & exclusive - wanted[one.path].cpus)
        self._written = tuple(islice(harmful, MOST_AT_ONCE))
        return tuple(one.path for one in self._written)

    def _is_due(self, now_seconds: float, *, was_on: bool, resynced: bool) -> bool:
        if not self._is_on:
            return resynced and now_seconds - self._idle_seconds >= IDLE_SECONDS
        return resynced or not (was_on or now_seconds - self._looked_seconds < LEAST_SECONDS)

    def rest(self) -> None:
        """Nothing is enforced: nothing is looked at."""
        self._is_on = False
        self._inherited.forget()

    def look_again(self, tree: Tree) -> None:
        """The sets were to be written again: see whether the threads follow them."""
        now_seconds, written, self._written = self._clock.monotonic(), self._written, ()
        for one in written:
            if one.path in tree.cgroups:
                own = tree.cgroups[one.path].effective_cpus
                is_narrow = not self._survey.still_wide(one, own.mask)
                self._repeated.note_written(one.path, now_seconds, is_narrow=is_narrow)
                about = {"cgroup": one.path, "thread_name": one.name, "cpus": one.cpus, "own": own}
                LOG.info("threads had CPUs that their cgroup has not", extra=about)

    @property
    def wide(self) -> tuple[WideThreads, ...]:
        """The cgroups with wide threads now, or with some that come back again and again."""
        return self._repeated.wide

    @property
    def inherited(self) -> tuple[InheritedMask, ...]:
        """The cgroups whose threads have the CPU affinity of the container runtime."""
        return self._inherited.found

    @property
    def note(self) -> str:
        """Which threads may use any CPU for all that is known; empty if there are none."""
        return "; ".join(self._notes()) if self._is_on else ""

    def _notes(self) -> Iterator[str]:
        if self._threads.problem:
            yield f"the CPUs of threads cannot be read: {self._threads.problem}"
        if self._survey.hidden:
            yield "some threads are not seen: the enforcer's pod needs hostPID"
        for path in sorted(self._survey.cut)[:1]:
            count = len(self._survey.cut)
            yield f"{plural(count, 'cgroup')} with too many threads to compare, such as {path}"
