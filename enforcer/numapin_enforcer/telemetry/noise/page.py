"""The page for `numapin check`: the kernel's counters of exclusive CPUs at one moment, by name."""

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from numapin_api.cpuset import CpuSet
from numapin_daemon.clock import Clock, SystemClock
from numapin_enforcer.pass_values import Converged, Pass
from numapin_enforcer.telemetry.noise.look import Look, Looker
from numapin_enforcer.telemetry.noise.tasks import Task
from numapin_enforcer.telemetry.samples.containers import MOST_THREADS
from numapin_enforcer.telemetry.samples.interrupts import Interrupt
from numapin_enforcer.telemetry.samples.overlap import ExclusiveContainer

COST_SHARE: Final = 0.02
"""The part of one CPU that pages may take: one of a large node takes some 0.2 s."""

Json = dict[str, Any]


class CpuPage:
    """Makes the page of what the last pass has found; may be asked for in any one thread.

    Two pages say what ran in between. So the enforcer keeps nothing for whoever measures.
    """

    def __init__(self, looker: Looker, clock: Clock | None = None) -> None:
        self._looker, self._clock = looker, clock or SystemClock()
        self._counters = looker.counters
        self._last = Converged()
        self._text, self._until_seconds = "", 0.0

    def passed(self, done: Pass, _: object) -> None:
        """A pass has ended."""
        self._last = done.result

    def text(self) -> str:
        """The page; the one before, if making it took so much that it is too soon for another."""
        if self._text and self._clock.monotonic() < self._until_seconds:
            return self._text
        began_seconds = time.thread_time()
        self._text = "".join(self._page(self._looker.look(self._last)))
        spent_seconds = time.thread_time() - began_seconds
        self._until_seconds = self._clock.monotonic() + spent_seconds / COST_SHARE
        return self._text

    def _page(self, look: Look) -> Iterator[str]:
        """The page in pieces: it may have half a million counts."""
        left, containers = MOST_THREADS, list[Json]()
        for one, threads in look.containers:
            containers.append(self._container(one, threads[:left], is_cut=len(threads) > left))
            left = max(0, left - len(threads))
        head = {
            "takenSeconds": self._clock.monotonic(),
            "containers": containers,
            "cpus": list(self._cpus(look.cpus)),
            "tasksComplete": look.tasks.complete,
        }
        yield _json(head)[:-1]
        yield f',"interrupts":[{",".join(map(_interrupt, look.interrupts))}]'
        yield f',"tasks":[{",".join(map(_task, look.tasks.found))}]}}'

    def _container(self, one: ExclusiveContainer, threads: Sequence[int], *, is_cut: bool) -> Json:
        """One container, with the counters of its threads: they begin and end between two pages."""
        rows = list[tuple[int, float, int, int]]()
        for thread in threads:
            if (times := self._counters.thread_times(thread)) is not None:
                moved = self._counters.migrations(thread)
                rows.append((thread, times.waited_seconds, times.slices, moved))
        namespace, pod, container = one.labels
        return {
            "namespace": namespace,
            "pod": pod,
            "podUID": one.container.pod_uid,
            "container": container,
            "cpus": str(one.cpus),
            "ranSeconds": self._counters.cgroup_seconds(one.path, one.cpus),
            "threads": rows,
            "threadsComplete": not is_cut,
        }

    def _cpus(self, cpus: CpuSet) -> Iterator[Json]:
        ran, slices = self._counters.cpu_seconds(), self._counters.cpu_slices()
        for cpu in cpus:
            yield {"cpu": cpu, "ranSeconds": ran.get(cpu), "slices": slices.get(cpu)}


def _interrupt(one: Interrupt) -> str:
    return _json({"number": one.number, "name": one.name, "counts": dict(one.came())})


def _task(one: Task) -> str:
    return _json(
        {
            "id": one.id,
            "startTicks": one.stat.start_ticks,
            "name": one.stat.name,
            "kernel": one.stat.is_kernel,
            "cpu": one.stat.cpu,
            "ranSeconds": one.times.ran_seconds,
            "slices": one.times.slices,
        }
    )


def _json(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))
