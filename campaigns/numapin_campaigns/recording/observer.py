"""Report when a cgroup of pods gets which CPUs, and when a process: `python observer.py KUBEPODS`.

It prints one line of JSON for each change: `[seconds of the monotonic clock, path below KUBEPODS,
effective CPUs, whether it has a process]`; CPUs are null when the cgroup is gone. It reads every
cgroup each millisecond and whenever inotify reports a write or a new folder, with real-time
priority if it may, so that busy pods do not delay it. It ends with its standard input. The first
line, `{"samples": 0}`, says that it has begun, the last one how often it read, `{"samples": ...,
"longestGapSeconds": ...}`. It shares no code with what it watches.
"""

import contextlib
import ctypes
import json
import os
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path

EFFECTIVE = {1: "cpuset.effective_cpus", 2: "cpuset.cpus.effective"}
POLL_MILLISECONDS = 1
_MODIFY, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x80, 0x100, 0x200
"""Source: linux/inotify.h."""

State = tuple[str | None, bool]
GONE: State = (None, False)


class Wakes:
    """An inotify descriptor: readable when something was written to, or made in, a folder."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), "inotify is not to be had")

    def add(self, folder: str) -> None:
        """Watch one folder; one that is gone is ignored."""
        mask = ctypes.c_uint32(_MODIFY | _MOVED_TO | _CREATE | _DELETE)
        self._libc.inotify_add_watch(self.descriptor, os.fsencode(folder), mask)

    def drain(self) -> None:
        """Discard the events: they only wake."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.descriptor, 65536):
                pass

    def wait(self, seconds: float) -> None:
        """Return at an event, or when the time is over."""
        select.select([self.descriptor], [], [], seconds)
        self.drain()

    def close(self) -> None:
        """Stop watching."""
        os.close(self.descriptor)


class Tree:
    """Every cgroup below `root`, and its last reported state."""

    def __init__(self, root: str, wakes: Wakes) -> None:
        version = 2 if Path(root, "cgroup.controllers").exists() else 1
        self._root, self._wakes, self._file = root, wakes, EFFECTIVE[version]
        self._open: dict[str, int] = {}
        self._reported: dict[str, State] = {}

    def changes(self) -> list[tuple[float, str, str | None, bool]]:
        """The changes since the last call."""
        self._find(self._root)
        found = []
        for path, descriptor in list(self._open.items()):
            state = self._state(path, descriptor)
            if state != self._reported.get(path):
                self._reported[path] = state
                found.append((time.monotonic(), path[len(self._root) + 1 :], *state))
            if state == GONE:
                os.close(self._open.pop(path))
        return found

    def _find(self, folder: str) -> None:
        try:
            children = [entry.path for entry in os.scandir(folder) if entry.is_dir()]
        except FileNotFoundError:
            return
        for child in children:
            if child not in self._open:
                self._wakes.add(child)
                with contextlib.suppress(FileNotFoundError):
                    self._open[child] = os.open(f"{child}/{self._file}", os.O_RDONLY)
            self._find(child)

    def _state(self, path: str, descriptor: int) -> State:
        """Its CPUs, and whether it has a process.

        cgroup.procs is opened each time: with v1 an open file is a copy that may be a second old.
        """
        try:
            cpus = os.pread(descriptor, 4096, 0).decode().strip()
            processes = os.open(f"{path}/cgroup.procs", os.O_RDONLY)
        except OSError:
            return GONE
        try:
            return cpus, bool(os.read(processes, 16))
        except OSError:
            return GONE
        finally:
            os.close(processes)


@contextlib.contextmanager
def real_time() -> Iterator[None]:
    """Run with real-time priority meanwhile, where that is allowed (CAP_SYS_NICE)."""
    ordinary, lowest = os.sched_param(0), os.sched_param(os.sched_get_priority_min(os.SCHED_RR))
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, lowest)
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, ordinary)


def watch(root: str) -> None:
    """Print changes until the standard input ends."""
    wakes = Wakes()
    wakes.add(root)
    tree, poll = Tree(root, wakes), select.poll()
    poll.register(wakes.descriptor, select.POLLIN)
    poll.register(sys.stdin.fileno(), select.POLLHUP | select.POLLIN)
    print(json.dumps({"samples": 0}), flush=True)
    samples, longest, last = 0, 0.0, time.monotonic()
    while sys.stdin.fileno() not in dict(poll.poll(POLL_MILLISECONDS)):
        wakes.drain()
        for change in tree.changes():
            print(json.dumps(change), flush=True)
        now = time.monotonic()
        samples, longest, last = samples + 1, max(longest, now - last), now
    print(json.dumps({"samples": samples, "longestGapSeconds": longest}), flush=True)


if __name__ == "__main__":
    with real_time():
        watch(sys.argv[1])
