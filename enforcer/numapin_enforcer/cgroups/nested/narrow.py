"""Narrows the cgroups inside a container that are not read (cgroup v1)."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_daemon.flowcontrol.rate_limit import TokenBucket
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.file_access import list_folders, read_bytes, write_file

MOST_INSIDE: Final = 10_000
"""How many cgroups inside one container are looked at. One takes some 50 microseconds."""

BURST_SECONDS: Final = 1.0
CPU_SHARE: Final = 0.1
"""The CPU time for it at once, and in the long run: a tenant may make any number of cgroups."""

_FILE: Final = "cpuset.cpus"


class InsideNarrower:
    """Takes CPUs from all cgroups inside one, which the kernel wants first (EBUSY).

    What is not read is in no plan, and it would keep its container on CPUs that become exclusive.
    """

    def __init__(self, cpu_time: Callable[[], float] = time.thread_time) -> None:
        self._cpu_time = cpu_time
        self._budget = TokenBucket(BURST_SECONDS, CPU_SHARE)

    def narrow(self, folder: str, cpus: CpuSet) -> None:
        """Let nothing below a cgroup have other CPUs than these, as far as the budget goes.

        What cannot be set is left: the kernel refuses then the write that this is for.

        Args:
            folder: of the cgroup. It gains those of `cpus` that it lacks, since its children may.
            cpus: what it must have.

        Raises:
            CgroupError: the cgroup itself cannot be read, or cannot gain them.
        """
        if not self._budget.take(0.0, time.monotonic()):
            return
        began_seconds = self._cpu_time()
        found = _read(folder)
        if cpus - found:
            write_file(f"{folder}/{_FILE}", str(found | cpus))
        for inside, is_left in _walk(folder):
            with suppress(CgroupError):
                _set(inside, cpus, is_left=is_left)
        self._budget.spend(self._cpu_time() - began_seconds, time.monotonic())


def _walk(folder: str) -> Iterator[tuple[str, bool]]:
    """Each folder below one twice: before those in it, and after them (True)."""
    pending, found = [(folder, True)], 0
    while pending:
        path, is_left = pending.pop()
        if path != folder:
            yield path, is_left
        if is_left and path != folder:
            continue
        pending += [(path, True)] if path != folder else []
        with suppress(CgroupError):
            for name in list_folders(path, MOST_INSIDE - found):
                found += 1
                pending.append((f"{path}/{name}", False))


def _set(folder: str, cpus: CpuSet, *, is_left: bool) -> None:
    """One that keeps none of its CPUs gets all new ones first: a child is inside its parent."""
    found = _read(folder)
    if is_left and found - cpus:
        write_file(f"{folder}/{_FILE}", str(found & cpus))
    elif found and found.isdisjoint(cpus):
        write_file(f"{folder}/{_FILE}", str(found | cpus))


def _read(folder: str) -> CpuSet:
    return CpuSet.parse(read_bytes(f"{folder}/{_FILE}").decode("ascii").strip())
