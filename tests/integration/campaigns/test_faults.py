"""Faults of a chaos run do to a real disk and a real cgroup what their names say."""

import errno
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from numapin_campaigns.faults.crowd import NESTED, fill
from numapin_campaigns.faults.tenant import (
    DEPTH,
    EVENT_STORM,
    FIFO_HOG,
    HOSTILE_CGROUPS,
    MANY,
    Tenant,
)
from numapin_campaigns.frame.plan import Fault, PlannedFault
from numapin_campaigns.parts.state_folder import OPTIONS, Place, StateFolder
from numapin_campaigns.sampling.cgroup_tree import UNREAD
from numapin_lab.errors import LabError
from support.real.cgroups import RealCgroups

CONTAINER = "podx/" + "a" * 64


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A small file system with a file that is open for writing, as the enforcer's lock is."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", OPTIONS, "test", str(tmp_path)], check=True)
    try:
        with (tmp_path / "writer.lock").open("w"):
            yield tmp_path
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def write_error(folder: Path) -> int | None:
    """The error of a new file with one block."""
    try:
        with (folder / "assignment.json.new").open("wb", buffering=0) as file:
            file.write(b"x" * 4096)
    except OSError as error:
        return error.errno
    (folder / "assignment.json.new").unlink()
    return None


def test_a_full_folder_takes_no_block_and_a_read_only_one_no_file(folder: Path) -> None:
    state = StateFolder(folder)
    with state.full():
        assert write_error(folder) == errno.ENOSPC
    (folder / "assignment.json.new").unlink()
    with state.read_only():
        assert write_error(folder) == errno.EROFS
        assert (folder / "writer.lock").exists()
    assert write_error(folder) is None


@pytest.fixture
def apart(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process with a mount namespace of its own, as a container has one."""
    command = ("unshare", "--mount", "sh", "-c", "echo begun; exec sleep 1000")
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def seen_by(process: subprocess.Popen[bytes], folder: Path) -> StateFolder:
    return StateFolder(folder, lambda: Place(str(folder), process.pid))


def test_a_folder_is_read_only_for_the_container_alone(
    folder: Path, apart: subprocess.Popen[bytes]
) -> None:
    inside = Path(f"/proc/{apart.pid}/root{folder}")
    with seen_by(apart, folder).read_only():
        assert write_error(inside) == errno.EROFS
        assert write_error(folder) is None
    assert write_error(inside) is None


def test_a_container_that_ends_takes_its_mount_with_it(
    folder: Path, apart: subprocess.Popen[bytes]
) -> None:
    with seen_by(apart, folder).read_only():
        apart.kill()
        apart.wait()
    assert write_error(folder) is None


def test_a_mount_that_fails_in_a_container_that_runs_is_an_error(
    folder: Path, apart: subprocess.Popen[bytes]
) -> None:
    missing = StateFolder(folder, lambda: Place(str(folder / "missing"), apart.pid))
    with pytest.raises(LabError, match="nsenter"), missing.read_only():
        pass


def fault(which: Fault, seconds: float = 0.0) -> PlannedFault:
    return PlannedFault(which, 1, (seconds,))


def test_a_tenant_nests_cgroups_that_are_foreign_deep_many_and_oddly_named() -> None:
    with RealCgroups() as kernel:
        kubepods = kernel.mounts.cpuset / kernel.root
        for path in ("podx", CONTAINER):
            kernel.make(f"{kernel.root}/{path}")
        tenant = Tenant(kubepods, Counter())
        tenant.inject(fault(HOSTILE_CGROUPS))
        container = kubepods / CONTAINER
        foreign = (container / "foreign").stat()
        assert (foreign.st_uid, foreign.st_mode & 0o777) == (65534, 0)
        assert (container / "/".join("d" * DEPTH)).is_dir()
        folders = {one.name for one in container.iterdir() if one.is_dir()}
        odd = os.fsdecode(b"\xff\xfe")
        assert folders == {"foreign", "d", odd, *(f"many-{number}" for number in range(MANY))}
        assert tenant.made == {"Nested": DEPTH + MANY + 2}


def test_a_storm_writes_files_that_say_nothing_of_cpusets(tmp_path: Path) -> None:
    container = tmp_path / CONTAINER
    container.mkdir(parents=True)
    (container / "notify_on_release").write_text("1")
    tenant = Tenant(tmp_path, Counter())
    tenant.inject(fault(EVENT_STORM, seconds=-1.5))
    assert tenant.made["IrrelevantWrites"] > 0
    assert (container / "notify_on_release").read_text() == "0"


def test_a_tenant_without_a_container_does_nothing(tmp_path: Path) -> None:
    tenant = Tenant(tmp_path, Counter())
    for which in (HOSTILE_CGROUPS, EVENT_STORM):
        tenant.inject(fault(which))
    assert not tenant.made


def test_a_crowded_container_has_hundreds_of_cgroups_in_one_that_is_not_read() -> None:
    with RealCgroups() as kernel:
        kernel.make(kernel.root + "/podx")
        container = kernel.mounts.cpuset / kernel.root / "podx"
        assert fill(container) == NESTED + 1
        assert len([one for one in (container / UNREAD).iterdir() if one.is_dir()]) == NESTED


def test_a_real_time_tenant_is_busy_in_its_cgroup_and_ends_by_itself() -> None:
    with RealCgroups() as kernel:
        path = f"{kernel.root}/podx"
        kernel.make(path)
        folder = kernel.mounts.cpuset / path
        for name in ("cpuset.mems", "cpuset.cpus"):
            (folder / name).write_text((folder.parent / name).read_text())
        command = (sys.executable, "-m", "numapin_campaigns.tenants.fifo_hog", "30", str(folder))
        with subprocess.Popen(command) as process:
            while os.sched_getscheduler(process.pid) != os.SCHED_FIFO:
                assert process.poll() is None
                os.sched_yield()
            assert (folder / "cgroup.procs").read_text() == f"{process.pid}\n"
            process.kill()
        tenant = Tenant(folder, Counter(), folder)
        tenant.inject(fault(FIFO_HOG, seconds=-1.9))
        assert tenant.made == {"FifoHogs": 1}
        nowhere = Tenant(folder, Counter(), folder / "missing")
        nowhere.inject(fault(FIFO_HOG, seconds=-1.9))
        assert nowhere.made == {"FifoRefused": 1}
