"""Reads the threads of a cgroup, and the CPUs that the kernel lets each of them use."""

import ctypes
import errno
import os
from pathlib import Path
from typing import Final, NamedTuple

from numapin_api.text import escaped
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.tree import Version

MOST_BYTES: Final = 262_144
"""Of a list of threads: some 32,000 of them."""

_LARGEST_MASK_BYTES: Final = 8192
_FILES: Final = {Version.V1: "tasks", Version.V2: "cgroup.threads"}
_READ: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW


class ThreadList(NamedTuple):
    """The threads in a cgroup itself, by ascending id.

    `hidden` if some are not seen from here: they have no id in this PID namespace. `cut` if there
    are more than were read.
    """

    ids: tuple[int, ...]
    hidden: bool = False
    cut: bool = False


NO_THREADS: Final = ThreadList(())


class Process(NamedTuple):
    """The process of a thread.

    Attributes:
        id: its id, which is that of its first thread.
        parent: the id of the process that it is a child of; 0 if that is not seen from here.
        depth: in how many PID namespaces it is, from the one that is seen here on: 1 for the
            container runtime, 2 for most containers.
    """

    id: int
    parent: int
    depth: int


class ThreadReader:
    """The threads of this machine. What has ended meanwhile, or cannot be read, counts as gone.

    A mask is read by `sched_getaffinity`: a tenth of what reading `/proc/PID/status` takes.
    `os.sched_getaffinity` makes an object for each CPU, which takes longer the more there are.
    """

    def __init__(self, mounts: Mounts, procfs: Path) -> None:
        """Args: `procfs` has the processes of this PID namespace."""
        self._mount, self._list = str(mounts.cpuset), _FILES[mounts.version]
        self._procfs = procfs
        self._get = ctypes.CDLL(None, use_errno=True).sched_getaffinity
        self._mask = (ctypes.c_char * 64)()
        self.problem = ""
        """Why masks cannot be read; empty while they can."""

    def threads(self, path: str) -> ThreadList:
        """The threads in the cgroup itself, not those below it."""
        try:
            file = os.open(f"{self._mount}/{path}/{self._list}", _READ)
            try:
                text = _read(file)
            finally:
                os.close(file)
        except OSError:
            return NO_THREADS
        is_cut = len(text) >= MOST_BYTES
        ids = sorted({int(one) for one in text.rpartition(b"\n")[0].split()})
        is_hidden = bool(ids) and not ids[0]
        return ThreadList(tuple(ids[is_hidden:]), is_hidden, is_cut)

    def mask(self, thread: int) -> int | None:
        """The CPUs that a thread may use, as a bit mask; None if it has ended, or on a refusal."""
        while self._get(thread, len(self._mask), self._mask) < 0:
            number = ctypes.get_errno()
            if number == errno.EINVAL and len(self._mask) < _LARGEST_MASK_BYTES:
                self._mask = (ctypes.c_char * (2 * len(self._mask)))()
                continue
            if number != errno.ESRCH:
                self.problem = os.strerror(number)
            return None
        self.problem = ""
        return int.from_bytes(self._mask, "little")

    def name(self, thread: int) -> str:
        """The name of a thread, escaped: it may have any. Empty if it has ended."""
        try:
            raw = (self._procfs / str(thread) / "comm").read_bytes()
        except OSError:
            return ""
        return escaped(raw.removesuffix(b"\n"))

    def process(self, thread: int) -> Process | None:
        """The process of a thread; None if it has ended. Takes 20 times as long as its mask."""
        try:
            text = (self._procfs / str(thread) / "status").read_bytes()
        except OSError:
            return None
        lines = (line.partition(b":") for line in text.splitlines())
        fields = {name: value.split() for name, _, value in lines}
        depth = len(fields.get(b"NSpid", (b"",)))
        return Process(int(fields[b"Tgid"][0]), int(fields[b"PPid"][0]), depth)


def _read(file: int) -> bytes:
    """What the kernel gives in pieces of a page, up to `MOST_BYTES`."""
    text = piece = os.read(file, MOST_BYTES)
    while piece and len(text) < MOST_BYTES:
        piece = os.read(file, MOST_BYTES)
        text += piece
    return text
