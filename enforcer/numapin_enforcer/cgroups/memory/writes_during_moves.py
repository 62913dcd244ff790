"""Writes that do not wait for a memory move which is under way.

On Linux up to 6.17 every write to a cpuset list waits, after it has taken effect, until all page
migrations have ended, whoever started them. Source: kernel/cgroup/cpuset.c,
`cpuset_write_resmask`, which ends with `flush_workqueue(cpuset_migrate_mm_wq)`.
"""

import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.tree import Cgroup, Tree
from numapin_enforcer.cgroups.tree_cache import CgroupFiles
from numapin_enforcer.cgroups.write import Write

LOOKS_SECONDS: Final = (0.001, 0.004, 0.015, 0.03)
"""The waits for the effect of a write, which is there long before the kernel answers."""

MOST_WAITING: Final = 64
"""How many writes may wait for the kernel's answer at once, each in a thread of its own."""


class MoveGate:
    """Whether a memory move is under way. None begins while another write is being made."""

    def __init__(self, *, left_moving: bool = False) -> None:
        """Args: `left_moving` if a process that has ended may have begun a move that goes on."""
        self.lock = threading.Lock()
        self._is_ours, self._is_left = False, left_moving

    @property
    def is_moving(self) -> bool:
        """Whether a write may have to wait for a move."""
        return self._is_ours or self._is_left

    @contextmanager
    def moving(self) -> Iterator[None]:
        """For the thread that moves memory: until it is left, others do not wait for the kernel."""
        with self.lock:
            self._is_ours = True
        try:
            yield
        finally:
            self._is_ours = False

    def note_answer(self) -> None:
        """The kernel has made and answered a write: what was left moving has ended."""
        self._is_left = False


class PatientFiles:
    """Cgroup files; while memory is moved, each write is made in a thread and read back."""

    def __init__(self, files: CgroupFiles, gate: MoveGate) -> None:
        """Args: the moves themselves are made with `files`, inside `gate`."""
        self._files, self._gate = files, gate
        self._waiting = threading.Semaphore(MOST_WAITING)

    def read(self) -> Tree:
        """See `CgroupTree`."""
        return self._files.read()

    def read_one(self, path: str) -> Cgroup:
        """See `CgroupFiles`."""
        return self._files.read_one(path)

    def read_effective_cpus(self, path: str) -> CpuSet:
        """See `CgroupTree`."""
        return self._files.read_effective_cpus(path)

    def has_tasks(self, path: str) -> bool:
        """See `CgroupFiles`."""
        return self._files.has_tasks(path)

    def write(self, write: Write) -> None:
        """Make one write; see `CgroupTree`.

        Raises:
            CgroupError: memory is being moved, and the write has no effect yet. It may have one
                later: the next pass reads what is there. Or no thread could be started for it.
        """
        with self._gate.lock:
            if not self._gate.is_moving:
                self._files.write(write)
                return
        attempt = self._begin(write)
        for seconds in LOOKS_SECONDS:
            if attempt.answered.wait(seconds):
                attempt.raise_error()
                self._gate.note_answer()
                return
            if _has(self._files.read_one(write.path), write):
                return
        raise _not_yet(write)

    def _begin(self, write: Write) -> "_Attempt":
        if not self._waiting.acquire(blocking=False):
            raise _not_yet(write)
        attempt = _Attempt(self._files, write, self._waiting)
        try:
            threading.Thread(target=attempt.run, name="write", daemon=True).start()
        except RuntimeError as error:  # how CPython says EAGAIN
            self._waiting.release()
            raise _without_thread(write) from error
        return attempt


class _Attempt:
    """One write in a thread; the kernel may answer seconds after the write has taken effect."""

    def __init__(self, files: CgroupFiles, write: Write, waiting: threading.Semaphore) -> None:
        self._files, self._write, self._waiting = files, write, waiting
        self._error: Exception | None = None
        self.answered = threading.Event()

    def run(self) -> None:
        try:
            self._files.write(self._write)
        except Exception as error:  # noqa: BLE001 (raised where the answer is awaited)
            self._error = error
        finally:
            self._waiting.release()
            self.answered.set()

    def raise_error(self) -> None:
        """Raise what the kernel answered, if it refused."""
        if self._error is not None:
            raise self._error


def _has(found: Cgroup, write: Write) -> bool:
    if isinstance(write.value, CpuSet):
        return found.cpus == write.value
    return isinstance(write.value, MemSet) and found.mems == write.value


def _not_yet(write: Write) -> CgroupError:
    meaning = "memory is being moved, and the kernel has not made this write yet; it is retried"
    return CgroupError(write.path, str(write.value), errno.ETIMEDOUT, meaning)


def _without_thread(write: Write) -> CgroupError:
    meaning = (
        "memory is being moved, and no thread can be started to make this write beside it (raise "
        "pids.max, podPidsLimit or kernel.threads-max); it is retried"
    )
    return CgroupError(write.path, str(write.value), errno.EAGAIN, meaning)
