"""Services, sessions and systemd itself keep off an exclusive CPU, beside a real systemd.

Not collected on the host: test_in_virtual_machine.py runs this with four CPUs.
"""

import asyncio
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from support.real.host.busy import (
    CGROUPS,
    LOOPS,
    HostEnforcer,
    cpus_used,
    differences,
    never_on,
    snapshot,
    until,
)

EVERY, OWN, LEFT = "0-3", 3, "0-2"
UNITS = ("init.scope", "system.slice", "user.slice", "machine.slice")
KILLS = 3
TOGGLING = """
import asyncio, sys
from pathlib import Path
from support.real.host.busy import HostEnforcer

async def toggle():
    enforcer = HostEnforcer(Path(sys.argv[1]))
    print("begins", flush=True)
    while True:
        for cpus in ("3", "2-3", "2", ""):
            enforcer.keep_off(cpus)
            await asyncio.sleep(0.3)

asyncio.run(toggle())
"""


@pytest.fixture
async def enforcer(tmp_path: Path) -> AsyncIterator[HostEnforcer]:
    made = HostEnforcer(tmp_path)
    yield made
    await made.give_back()
    await made.stop()


def call(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def asked(path: str) -> str:
    return (CGROUPS / path / "cpuset.cpus").read_text().strip()


def allowed(unit: str) -> str:
    return call("systemctl", "show", "--value", "--property=AllowedCPUs", unit).strip()


def set_property(unit: str, cpus: str) -> None:
    call("systemctl", "set-property", "--runtime", unit, f"AllowedCPUs={cpus}")


@contextmanager
def running_unit(name: str, slice_: str) -> Iterator[list[int]]:
    """A service of systemd whose processes never wait."""
    shell = f"for i in $(seq {LOOPS}); do while :; do :; done & done; wait"
    options = (
        f"--unit={name}",
        f"--slice={slice_}",
        "--property=DefaultDependencies=no",
        "--nice=19",
    )
    call("systemd-run", *options, "/bin/sh", "-c", shell)
    procs = CGROUPS / slice_ / f"{name}.service/cgroup.procs"
    try:
        while len(procs.read_text().split()) <= LOOPS:
            time.sleep(0.05)
        yield [int(one) for one in procs.read_text().split()][1:]
    finally:
        call("systemctl", "stop", f"{name}.service")


async def test_services_and_sessions_leave_and_come_back(enforcer: HostEnforcer) -> None:
    for slice_ in ("user.slice", "machine.slice"):
        call("systemctl", "start", slice_)
    set_property("machine.slice", "1-3")
    units = {unit: allowed(unit) for unit in UNITS}
    with (
        running_unit("busy", "system.slice") as service,
        running_unit("login", "user.slice") as session,
    ):
        before, both = snapshot(), [*service, *session]
        await until(lambda: OWN in cpus_used(both), "a loop on the CPU before")
        enforcer.keep_off(str(OWN))
        await until(lambda: str(enforcer.updater.kept_off) == str(OWN), "the CPU to be free")
        assert enforcer.updater.message == ""
        assert [allowed(unit) for unit in UNITS] == [LEFT, LEFT, LEFT, "1-2"]
        assert [asked(unit) for unit in UNITS] == [LEFT, LEFT, LEFT, "1-2"]
        await asyncio.to_thread(never_on, OWN, both)
        await others_write(enforcer)
        await asyncio.to_thread(never_on, OWN, both)
        await enforcer.give_back()
        await until(lambda: OWN in cpus_used(both), "a loop on the CPU again")
        assert differences(before, snapshot(), EVERY) == []
    assert {unit: allowed(unit) for unit in UNITS} == units


async def others_write(enforcer: HostEnforcer) -> None:
    """systemd's own writes, those of an administrator, and slices that come and go."""
    call("systemctl", "daemon-reload")
    assert asked("system.slice") == LEFT
    for cpus in (str(OWN), EVERY):
        set_property("system.slice", cpus)
        await until(lambda: (asked("system.slice"), allowed("system.slice")) == (LEFT, LEFT), cpus)
    (CGROUPS / "user.slice/cpuset.cpus").write_text(str(OWN))
    await until(lambda: asked("user.slice") == LEFT, "a write past systemd to be reverted")
    counted = set[str]()  # a change counts when systemd has answered as well

    def are_counted() -> bool:
        counted.update(one.path for one in enforcer.updater.pop_drifts())
        return counted >= {"system.slice", "user.slice"}

    await until(are_counted, "both changes to be counted")
    assert counted == {"system.slice", "user.slice"}
    with running_unit("late", "late.slice") as pids:
        await until(lambda: asked("late.slice") == LEFT, "a new slice to be set")
        assert allowed("late.slice") == LEFT
        await asyncio.to_thread(never_on, OWN, pids)
    call("systemctl", "stop", "machine.slice")
    call("systemctl", "start", "machine.slice")
    await until(lambda: asked("machine.slice") == "1-2", "a slice that was started again")


async def test_a_property_that_is_reset_is_set_again(
    enforcer: HostEnforcer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel keeps the set (ENOSPC), so no event says it: a question to systemd finds it."""
    monkeypatch.setattr("numapin_enforcer.host.units.CHECK_SECONDS", 0.0)
    enforcer.keep_off(str(OWN))
    await until(lambda: allowed("system.slice") == LEFT, "the slice to be set")
    for reset in (partial(set_property, "system.slice", ""), revert):
        reset()
        enforcer.keep_off(str(OWN), resynced=True)
        await until(lambda: allowed("system.slice") == LEFT, "the property to be set again")
        assert asked("system.slice") == LEFT


def revert() -> None:
    call("systemctl", "revert", "system.slice")
    call("systemctl", "daemon-reload")


def kill_one(folder: Path) -> None:
    """A process writes again and again until it is killed, at any moment."""
    command = (sys.executable, "-c", TOGGLING, str(folder))
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd="tests") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begins\n"
        time.sleep(random.uniform(0.05, 2.0))
        process.send_signal(signal.SIGKILL)


async def test_a_killed_process_leaves_nothing_that_the_next_one_does_not_give_back(
    tmp_path: Path,
) -> None:
    before, units = snapshot(), {unit: allowed(unit) for unit in UNITS}
    for _ in range(KILLS):
        await asyncio.to_thread(kill_one, tmp_path)
    made = HostEnforcer(tmp_path)
    await made.give_back()
    await made.stop()
    assert differences(before, snapshot(), EVERY) == []
    assert {unit: allowed(unit) for unit in UNITS} == units
