#!/usr/bin/env python3
"""Keep worker threads on the exclusive CPUs of their container, as numapin announces them.

    follow_cpus.py FILE CONTAINER [WORKERS]

FILE shows the annotation numapin.io/cpus of the pod: docs/notice.md has the volume for it.
Needs nothing but Python 3.11 on Linux. Each change is printed as a line of JSON.
"""

import ctypes
import errno
import json
import os
import select
import struct
import sys
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

IN_MOVED_TO = 0x80
IN_ONLYDIR = 0x01000000
"""Source: inotify(7), <sys/inotify.h>."""

EVENT = struct.Struct("iIII")
READ_BYTES = 64 * 1024

LOOK_SECONDS = 30.0
"""The file is read so often although no event came, so that a lost one costs no more."""

AGAIN_SECONDS = 0.05
"""A CPU that is announced may not be in force yet: it is tried again after this time."""


class Cpus(NamedTuple):
    """What is announced: the CPUs of the container, and those that leave it, not before `at`.

    Without exclusive CPUs, or before they are known, there are none.
    """

    cpus: frozenset[int] = frozenset()
    leaving: frozenset[int] = frozenset()
    at: str = ""


def parse_cpus(text: str) -> frozenset[int]:
    """The CPUs of a kernel list, such as 2-3,6."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def parse_announced(text: str, container: str) -> Cpus:
    """What is announced for a container.

    Raises:
        ValueError: the text is of a version that this program does not know.
    """
    if not text.strip():
        return Cpus()
    announced = json.loads(text)
    if announced["version"] != 1:
        raise ValueError(f"version {announced['version']} of the annotation is not known")
    mine = announced["containers"].get(container, {})
    leaving = mine.get("leaving", {})
    cpus, gone = (parse_cpus(one.get("cpus", "")) for one in (mine, leaving))
    return Cpus(cpus, gone, leaving.get("at", ""))


class FolderWatch:
    """Sees the kubelet replace the files of a volume, which it does by renaming `..data`."""

    def __init__(self, folder: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        path, wanted = os.fsencode(folder), IN_MOVED_TO | IN_ONLYDIR
        if self.descriptor < 0 or libc.inotify_add_watch(self.descriptor, path, wanted) < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))

    def wait(self, seconds: float) -> bool:
        """Wait until files were replaced, at most so long; whether they were."""
        if not select.select([self.descriptor], [], [], seconds)[0]:
            return False
        events, names, at = os.read(self.descriptor, READ_BYTES), [], 0
        while at < len(events):
            *_, length = EVENT.unpack_from(events, at)
            names.append(events[at + EVENT.size : at + EVENT.size + length].rstrip(b"\0"))
            at += EVENT.size + length
        return b"..data" in names or b"" in names  # without a name: the queue was full


def announcements(file: Path, container: str) -> Generator[Cpus, float, None]:
    """What is announced, now and after each change, or when the time that was sent has passed."""
    watch = FolderWatch(file.parent)  # before the first read, so that no change is missed
    found = Cpus()
    while True:
        with suppress(FileNotFoundError):  # between two states of the volume
            found = parse_announced(file.read_text(), container)
        deadline = time.monotonic() + (yield found)
        while (left := deadline - time.monotonic()) > 0 and not watch.wait(left):
            pass


class Workers:
    """Threads that stand for a program's polling loops, each on one CPU of its own."""

    def __init__(self, count: int) -> None:
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()
        self.cpus: list[int | None] = [None] * count
        """The CPU that each thread is on; None while it may use all of the container's."""

    def _work(self) -> None:
        while True:
            time.sleep(0.01)

    def place(self, announced: Cpus) -> bool:
        """Have no thread on a CPU that leaves; False if a CPU is not in force yet.

        A thread whose CPU stays is left alone. Without exclusive CPUs all threads share those that
        the main thread has, which is never pinned.
        """
        staying = sorted(announced.cpus - announced.leaving)
        free = [cpu for cpu in staying if cpu not in self.cpus]
        done = True
        for number, cpu in enumerate(self.cpus):
            if cpu is not None and cpu in staying:
                continue
            chosen = (free or staying)[number % len(free or staying)] if staying else None
            if chosen in free:
                free.remove(chosen)
            if chosen is None and cpu is None:
                continue
            done &= self._pin(number, chosen)
        return done

    def _pin(self, number: int, cpu: int | None) -> bool:
        cpus = os.sched_getaffinity(0) if cpu is None else {cpu}
        thread = self._threads[number].native_id
        assert thread is not None
        try:
            os.sched_setaffinity(thread, cpus)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return False
        self.cpus[number] = cpu
        return True


def main() -> None:
    """Follow the file until the program is ended."""
    file, container = Path(sys.argv[1]), sys.argv[2]
    workers = Workers(int(sys.argv[3]) if len(sys.argv) > 3 else 2)
    following = announcements(file, container)
    announced, shown = next(following), ""
    while True:
        done = workers.place(announced)
        cpus, leaving = sorted(announced.cpus), sorted(announced.leaving)
        said = {"cpus": cpus, "leaving": leaving, "at": announced.at, "workers": workers.cpus}
        if (line := json.dumps(said)) != shown:
            print(line, flush=True)
            shown = line
        announced = following.send(LOOK_SECONDS if done else AGAIN_SECONDS)


if __name__ == "__main__":
    main()
