"""Processes in cgroups that no set restricts: the root, and those that hold the kubelet's."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from numapin_enforcer.cgroups.mounts import Mounts

SHOWN: Final = 3
"""How many processes are named."""

_KERNEL_THREAD: Final = 0x00200000
"""Source: linux/sched.h, `PF_KTHREAD`; proc_pid_stat(5), field 9."""

_FLAGS: Final = 6
"""The place of the flags behind the name, which may have any characters."""


class RootTasks:
    """The processes of programs there. Kernel threads are none: most cannot be moved at all."""

    def __init__(self, mounts: Mounts, procfs: Path) -> None:
        self._mount, self._procfs = mounts.cpuset, procfs
        self._threads: frozenset[str] = frozenset()
        """Kernel threads that were seen last, which need not be looked at again."""

    def look(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Names of some processes in these cgroups themselves, each with its id."""
        threads, found = set[str](), list[str]()
        for path in paths:
            for task in self._tasks(path):
                if len(found) == SHOWN:
                    break
                if task in self._threads or (name := self._program(task)) is None:
                    threads.add(task)
                elif name:
                    found.append(f"{name} ({task})")
        self._threads = frozenset(threads)
        return tuple(found)

    def _tasks(self, path: str) -> list[str]:
        try:
            text = (self._mount / path / "cgroup.procs").read_text(encoding="ascii")
        except OSError:
            return []
        return [one for one in text.split() if one != "0"]

    def _program(self, task: str) -> str | None:
        """The name of a process; empty if it has ended, None if it is a kernel thread."""
        try:
            text = (self._procfs / task / "stat").read_bytes()
        except OSError:
            return ""
        name, _, rest = text.partition(b"(")[2].rpartition(b")")
        flags = int(rest.split()[_FLAGS])
        if flags & _KERNEL_THREAD:
            return None
        shown = name.decode("ascii", "backslashreplace")
        return "".join(one if one.isprintable() else "?" for one in shown)
