"""Threads in the cgroups of a kernel model: as Linux, which sets them when the cgroup changes.

Held to the real kernel by `tests/integration/enforcer/cgroups/test_io_threads.py`.
"""

from dataclasses import dataclass, field

from numapin_api.cpuset import CpuSet
from numapin_campaigns.histories.kernel.model import KernelModel
from numapin_enforcer.cgroups.write import Write
from numapin_enforcer.threads.reader import NO_THREADS, Process, ThreadList

SHIM = 50
"""The container runtime, which is in no cgroup of the model; it may use any CPU."""


@dataclass
class Thread:
    """A thread; `chosen` are the CPUs that it, or what started it, chose: all if empty.

    It is a process of its own if `parent` is set, else one more thread of the process `id`.
    """

    path: str
    cpus: CpuSet
    name: str
    chosen: CpuSet = field(default_factory=CpuSet)
    parent: int = SHIM
    depth: int = 2


class ModelThreads:
    """A thread starts with the CPUs of its cgroup, or with any others, as io_uring gives them."""

    def __init__(self, model: KernelModel) -> None:
        self.model, self.problem = model, ""
        self.running: dict[int, Thread] = {}
        self.hidden: set[str] = set()
        self.leaving: dict[int, str] = {}
        """Threads that go to another cgroup, or (empty) end, once their mask was read."""
        self.lists = self.masks = self.processes = 0
        self.shim = CpuSet.parse("0-63")
        self._before = self._effective()
        self.watch()

    def watch(self) -> None:
        """Follow each write to the model, besides what is done after it already."""
        before = self.model.after_write

        def follow(write: Write) -> None:
            before(write)
            self.follow()

        self.model.after_write = follow

    def start(self, path: str, cpus: str = "", name: str = "program") -> int:
        """A new thread; returns its id."""
        thread = max(self.running, default=100) + 1
        own = self._effective()[path]
        self.running[thread] = Thread(path, CpuSet.parse(cpus) if cpus else own, name)
        return thread

    def start_process(
        self, path: str, chosen: str = "", name: str = "program", parent: int = SHIM
    ) -> int:
        """A new process with an affinity that it chose, or inherited; returns its id.

        As Linux from 6.2 on, which remembers the affinity.
        """
        thread = self.start(path, name=name)
        one = self.running[thread]
        one.chosen, one.parent = CpuSet.parse(chosen), parent
        one.cpus = one.chosen & one.cpus or one.cpus
        return thread

    def follow(self) -> None:
        """Each cgroup that has other CPUs now gives them to its threads, as far as they chose."""
        now = self._effective()
        for one in self.running.values():
            if one.path in now and now[one.path] != self._before.get(one.path):
                one.cpus = one.chosen & now[one.path] or now[one.path]
        self._before = now

    def threads(self, path: str) -> ThreadList:
        self.lists += 1
        if path not in self.model.groups:
            return NO_THREADS
        ids = sorted(thread for thread, one in self.running.items() if one.path == path)
        return ThreadList(tuple(ids), path in self.hidden)

    def process(self, thread: int) -> Process | None:
        self.processes += 1
        if thread == SHIM:
            return Process(SHIM, 1, 1)
        one = self.running.get(thread)
        return Process(thread, one.parent, one.depth) if one else None

    def mask(self, thread: int) -> int | None:
        self.masks += 1
        if thread == SHIM:
            return self.shim.mask
        if thread not in self.running:
            return None
        found = self.running[thread].cpus.mask
        if thread in self.leaving:
            self.running[thread].path = self.leaving.pop(thread)
            if not self.running[thread].path:
                del self.running[thread]
        return found

    def name(self, thread: int) -> str:
        if thread == SHIM:
            return "containerd-shim"
        return self.running[thread].name if thread in self.running else ""

    def _effective(self) -> dict[str, CpuSet]:
        cgroups = KernelModel.read(self.model).cgroups
        return {path: one.effective_cpus for path, one in cgroups.items()}
