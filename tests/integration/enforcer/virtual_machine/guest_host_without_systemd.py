"""Processes of no pod keep off an exclusive CPU without systemd, on cgroup v2 and on v1.

Not collected on the host: test_in_virtual_machine.py runs this with four CPUs, in a machine of its
own, since the cpuset controller leaves cgroup v2 at the end.
"""

import asyncio
import subprocess
from pathlib import Path

import pytest

from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.tree import Version
from support.real.host.busy import (
    CGROUPS,
    HostEnforcer,
    cpus_used,
    differences,
    looping,
    never_on,
    snapshot,
    until,
)

EVERY, OWN, LEFT = "0-3", 3, "0-2"


async def test_cgroups_at_the_top_of_v2(tmp_path: Path) -> None:
    (CGROUPS / "cgroup.subtree_control").write_text("+cpuset")
    folders = [CGROUPS / one for one in ("runtime", "narrow", "kubepods")]
    for folder in folders:
        folder.mkdir()
    (CGROUPS / "narrow/cpuset.cpus").write_text("2-3")
    with looping(CGROUPS / "runtime") as pids:
        before = snapshot()
        await until(lambda: OWN in cpus_used(pids), "a loop on the CPU before")
        enforcer = HostEnforcer(tmp_path)
        enforcer.keep_off(str(OWN))
        await until(lambda: enforcer.updater.message, "the processes of the root to be found")
        assert str(enforcer.updater.kept_off) == "", "this test runs in the root cgroup"
        assert "no cpuset restricts processes in the root cgroup" in enforcer.updater.message
        texts = [(one / "cpuset.cpus").read_text().strip() for one in folders]
        assert texts == [LEFT, "2", ""]
        await asyncio.to_thread(never_on, OWN, pids)
        (CGROUPS / "runtime/cpuset.cpus").write_text(EVERY)
        await until(lambda: (folders[0] / "cpuset.cpus").read_text() == f"{LEFT}\n", "a repair")
        late = CGROUPS / "late"
        late.mkdir()
        await until(lambda: (late / "cpuset.cpus").read_text() == f"{LEFT}\n", "a new cgroup")
        late.rmdir()
        await enforcer.give_back()
        await enforcer.stop()
        await until(lambda: OWN in cpus_used(pids), "a loop on the CPU again")
        assert differences(before, snapshot(), EVERY) == []
    for folder in folders:
        folder.rmdir()


@pytest.fixture
def mount_v1(tmp_path: Path) -> Path:
    """The cpuset controller as v1: the machine ends with this test."""
    (CGROUPS / "cgroup.subtree_control").write_text("-cpuset")
    folder = tmp_path / "cpuset"
    folder.mkdir()
    subprocess.run(["mount", "-t", "cgroup", "-o", "cpuset", "cpuset", str(folder)], check=True)
    return folder


async def test_cpusets_of_v1(tmp_path: Path, mount_v1: Path) -> None:
    mount = mount_v1
    for path, cpus in (
        ("docker", EVERY),
        ("docker/a", EVERY),
        ("docker/b", "3"),
        ("kubepods", EVERY),
    ):
        make(mount / path, cpus)
    with looping(mount / "docker/a") as pids:
        before = snapshot(mount)
        enforcer = HostEnforcer(tmp_path, Mounts(Version.V1, mount, None))
        enforcer.keep_off(str(OWN))
        await until(lambda: asked(mount / "docker") == LEFT, "docker to be set")
        await until(lambda: enforcer.updater.message, "the processes of the root to be found")
        found = [asked(mount / one) for one in ("docker/a", "docker/b", "kubepods")]
        assert found == [LEFT, LEFT, EVERY]
        await asyncio.to_thread(never_on, OWN, pids)
        enforcer.keep_off("2-3")
        await until(lambda: asked(mount / "docker") == "0-1", "docker to follow")
        await enforcer.give_back()
        await enforcer.stop()
        assert differences(before, snapshot(mount), EVERY) == []
        await until(lambda: OWN in cpus_used(pids), "a loop on the CPU again")


def make(folder: Path, cpus: str) -> None:
    folder.mkdir()
    (folder / "cpuset.cpus").write_text(cpus)
    (folder / "cpuset.mems").write_text((folder.parent / "cpuset.mems").read_text())


def asked(folder: Path) -> str:
    return (folder / "cpuset.cpus").read_text().strip()
