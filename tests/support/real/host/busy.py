"""Processes of no pod on a real kernel: what keeps them off CPUs, and where they run."""

import asyncio
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.mounts import Mounts, find_mounts
from numapin_enforcer.host.cgroup_sets import KeepOff
from numapin_enforcer.host.files import HostFiles
from numapin_enforcer.host.found import FoundCgroups
from numapin_enforcer.host.keeper import HostKeeper
from numapin_enforcer.host.root_tasks import RootTasks
from numapin_enforcer.host.units import Units
from numapin_enforcer.host.updater import HostUpdater
from numapin_enforcer.host.watch import HostWatch
from numapin_enforcer.systemd.dbus import SystemdClient

CGROUPS = Path("/sys/fs/cgroup")
BUS = Path("/run/dbus/system_bus_socket")
POD_TREES = ("kubepods", "kubepods.slice")
LOOPS, SAMPLES, PATIENCE_SECONDS = 4, 100, 120.0
LOOP = ("nice", "-n", "19", "sh", "-c", "while :; do :; done")
"""Of least weight: it has each CPU that it may use and nothing else wants."""

FILES = (
    *("cpuset.cpus", "cpuset.cpus.effective", "cpuset.cpus.partition", "cpuset.mems"),
    "cpuset.effective_cpus",
)
_PROCESSOR = 36
"""Field 39 of proc_pid_stat(5), counted from the state behind the name."""
_ALLOWED = "Cpus_allowed_list:"


class HostEnforcer:
    """What keeps processes of no pod off CPUs, as the enforcer has it; a loop must run."""

    def __init__(self, folder: Path, mounts: Mounts | None = None) -> None:
        mounts = mounts or find_mounts(CGROUPS)
        self.found = FoundCgroups(folder, "boot")
        files = HostFiles(mounts, Path("/sys"))
        keeper = HostKeeper(files, self.found, Units(partial(SystemdClient, BUS)))
        roots, watch = RootTasks(mounts, Path("/proc")), partial(HostWatch, mounts.cpuset)
        self.updater = HostUpdater(keeper, roots, watch, asyncio.Event())
        self._task = asyncio.create_task(self.updater.run())

    def keep_off(self, cpus: str, *, resynced: bool = False) -> None:
        """Keep them off these CPUs; 0 and 1 are reserved and shared."""
        wanted = KeepOff(CpuSet.parse(cpus), CpuSet((0, 1)), POD_TREES)
        self.updater.want(wanted, resynced=resynced)

    async def give_back(self) -> None:
        """Give all back, and wait for the end of it."""
        self.keep_off("")
        await until(lambda: not self.found.cgroups, "everything to be given back")

    async def stop(self) -> None:
        """End the process, at whatever it waits for."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def until(holds: Callable[[], object], what: str) -> None:
    """Wait until it holds."""
    end_seconds = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end_seconds, what
        await asyncio.sleep(0.05)


def snapshot(mount: Path = CGROUPS) -> dict[str, bytes]:
    """All cpuset files of all cgroups, byte by byte."""
    files = (path for name in FILES for path in mount.rglob(name))
    return {str(one): one.read_bytes() for one in files}


def differences(
    before: dict[str, bytes], after: dict[str, bytes], every: str
) -> list[tuple[str, bytes, bytes]]:
    """What is not as before, of what is still there.

    Linux lets no cgroup with processes ask for nothing again: then it asks for all CPUs.
    Source: kernel/cgroup/cpuset.c, `validate_change` (ENOSPC).
    """
    found = []
    for name in before.keys() & after.keys():
        was, now = before[name], after[name]
        is_all = not was.strip() and now.decode().strip() == every
        if now != was and not (is_all and name.endswith("/cpuset.cpus")):
            found.append((name, was, now))
    return found


def cpus_used(pids: list[int]) -> set[int]:
    """The CPUs on which processes were when they ran last."""
    texts = [Path(f"/proc/{pid}/stat").read_text() for pid in pids]
    return {int(text.rpartition(")")[2].split()[_PROCESSOR]) for text in texts}


def never_on(cpu: int, pids: list[int]) -> None:
    """The kernel says that they may not, and in many samples none is there."""
    for pid in pids:
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
        (line,) = [one for one in status if one.startswith(_ALLOWED)]
        assert cpu not in CpuSet.parse(line.split()[1]), pid
    for _ in range(SAMPLES):
        assert cpu not in cpus_used(pids)
        time.sleep(0.005)


@contextmanager
def looping(folder: Path) -> Iterator[list[int]]:
    """Processes that never wait, in a cgroup."""
    started = [subprocess.Popen(LOOP) for _ in range(LOOPS)]
    try:
        for one in started:
            (folder / "cgroup.procs").write_text(str(one.pid))
        yield [one.pid for one in started]
    finally:
        for one in started:
            one.kill()
            one.wait()
