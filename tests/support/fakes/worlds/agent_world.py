"""An agent on a manual clock, its fakes and a model of the kernel."""

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_campaigns.histories.kernel.watched import ModelWatch, WatchedModel
from numapin_enforcer.agent import Agent
from numapin_enforcer.assignment.acceptance import Acceptance
from numapin_enforcer.cgroups.memory.writes_during_moves import MoveGate
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.tree_cache import TreeCache
from numapin_enforcer.cgroups.watch.inotify import Changes
from numapin_enforcer.node.heartbeat import Progress
from numapin_enforcer.node.kubelet_checkpoint import KubeletPins
from numapin_enforcer.plan.drift import Drift
from numapin_enforcer.status.reporter import Kernel, PassResult
from numapin_enforcer.telemetry.foreign_tasks import ForeignTasks
from numapin_enforcer.threads.check import ThreadCheck
from support.fakes.kernels.new_pods import NewPods
from support.fakes.kernels.threads import ModelThreads
from support.fakes.manual_clock import ManualClock

MACHINE = Topology(
    cpus=tuple(Cpu(cpu, cpu, 0, NO_CACHE, 0) for cpu in range(4)),
    numa_nodes=(NumaNode(0, 1 << 30), NumaNode(1, 1 << 30)),
)
POD, CONTAINER = "kubepods/podexclusive", f"kubepods/podexclusive/{'a' * 64}"
BODY: dict[str, Any] = {
    "metadata": {"name": "n", "uid": "u1", "generation": 1},
    "spec": {
        "pools": {"reserved": "0", "shared": "0-2"},
        "containers": [
            {
                "podUID": "exclusive",
                "namespace": "d",
                "pod": "p",
                "container": "c",
                "cpus": "3",
                "exclusive": True,
            }
        ],
    },
}


class Events:
    """The watch's descriptor: readable from the first event on, as if they never ended."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self.reads, self.matter = descriptor, 0, True
        self.collected = Changes()
        self.was_empty = False

    def fileno(self) -> int:
        return self._descriptor

    def begin(self) -> None:
        os.eventfd_write(self._descriptor, 1)

    def collect(self) -> bool:
        self.reads += 1
        return self.matter


class KubepodsFinder:
    """The kubelet's cgroups, which exist while `is_there` is set."""

    def __init__(self, model: WatchedModel, watch: Events, new_pods: NewPods) -> None:
        snapshot = TreeCache(model, ModelWatch(model))
        self._tree = SimpleNamespace(
            naming=CgroupNaming(Driver.CGROUPFS),
            files=model,
            snapshot=snapshot,
            watch=watch,
            new_pods=new_pods,
        )
        self.is_there, self.has_moved, self.tree = True, False, cast("Any", None)
        self.opened = 0

    def open(self) -> Any:
        self.opened += 1
        self.tree = self._tree if self.is_there else None
        return self.tree

    def close(self) -> None:
        self.tree = None

    def moved(self) -> bool:
        found, self.has_moved = self.has_moved, False
        return found


class Times:
    """CPU time of each CPU, and of each cgroup, as a test sets it."""

    def __init__(self) -> None:
        self.cpus: dict[int, float] = dict.fromkeys(range(8), 100.0)
        self.used: dict[str, float] = {}

    def cpu_seconds(self) -> dict[int, float]:
        return dict(self.cpus)

    def cgroup_seconds(self, path: str, cpus: CpuSet) -> float | None:
        return self.used.get(path, 0.0)


class Background:
    """Names the one container; remembers the specs that it was updated for."""

    def __init__(self) -> None:
        self.recheck_seconds: float | None = None
        self.names = SimpleNamespace(known={"a" * 64: "c"}, outdated="")
        self.memory = SimpleNamespace(gate=MoveGate(), found_mems={})
        self.names_complete = True
        self.by_runtime: frozenset[str] = frozenset()
        self.specs: list[Any] = []
        self.rests: list[dict[str, bool]] = []
        self.calls: list[str] = []

    def rest(self, _pods: Any, *, full_resync: bool, **arguments: bool) -> None:
        self.rests.append(arguments)

    def update(self, spec: Any, _pods: Any, _done: Any, *, full_resync: bool) -> None:
        self.specs.append(spec)

    def external(self, drifts: Iterable[Drift], _naming: Any) -> list[Drift]:
        return list(drifts)

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self.calls.append(name)


class World:
    """An agent, its fakes and a model of the kernel."""

    def __init__(self, descriptor: int, folder: Path, new_pods: NewPods) -> None:
        self.new_pods = new_pods
        self.model = WatchedModel(Version.V2, CpuSet(range(4)), MemSet((0, 1)))
        for path in (POD, CONTAINER):
            self.model.make(path)
        self.model.enter(CONTAINER)
        self.threads, self.times = ModelThreads(self.model), Times()
        self.events, self.background = Events(descriptor), Background()
        self.kubepods = KubepodsFinder(self.model, self.events, new_pods)
        self.assignments = SimpleNamespace(body=BODY, gone=False, received_at=0.0)
        self.saved: list[Any] = []
        self.kubelet_state_dir = folder
        self.results: list[Any] = []
        self.kernels: list[Kernel] = []
        self.failures: list[Any] = []
        self.driver_changes: list[bool] = []
        self.clock, self.wake = ManualClock(), asyncio.Event()
        reporter = SimpleNamespace(
            resume=lambda _: None,
            health=SimpleNamespace(outdated="", remark=""),
            report=self._report,
            failed=self.failures.append,
            recheck_seconds=None,
            summary=None,
            population=SimpleNamespace(newest_deserted_at=None),
            driver_changed=lambda: self.driver_changes.append(True),
        )
        self.reporter = reporter
        machine = SimpleNamespace(topology=MACHINE, rescan=lambda **_: False, free_hugepages=dict)
        self.agent = Agent(
            cast("Any", self.assignments),
            Acceptance("n"),
            cast("Any", SimpleNamespace(want=self.saved.append)),
            cast("Any", machine),
            cast("Any", self.kubepods),
            cast("Any", self.background),
            cast("Any", reporter),
            self.wake,
            KubeletPins(folder),
            ThreadCheck(self.threads, self.clock),
            ForeignTasks(self.times, self.clock),
            10.0,
            self.clock,
            progress=Progress(self.clock.monotonic),
        )

    def _report(self, result: PassResult, kernel: Kernel, _: Any) -> None:
        self.results.append(result)
        self.kernels.append(kernel)

    @property
    def cpus(self) -> str:
        return str(self.model.read().cgroups[CONTAINER].effective_cpus)
