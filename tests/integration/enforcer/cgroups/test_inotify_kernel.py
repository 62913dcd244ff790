"""Watching real cgroups: which events come, and that the kernel does not end a watch."""

import os
import select
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.watch.inotify import CgroupWatch
from numapin_enforcer.cgroups.watch.new_pods import NewPodWatch
from numapin_enforcer.cgroups.watch.raw_events import EventMask
from numapin_lab.node.played_kubelet import Kubelet
from support.real.kernel_cgroups import CPUSET

OVERFLOW = struct.pack("iIII", -1, EventMask.Q_OVERFLOW, 0, 0)


def _kernel_watches(watch: CgroupWatch | NewPodWatch) -> int:
    """How many watches the kernel holds. Source: proc(5), "/proc/pid/fdinfo"."""
    lines = Path(f"/proc/self/fdinfo/{watch._inotify.descriptor}").read_text().splitlines()
    return sum(line.startswith("inotify wd:") for line in lines)


async def test_a_removed_cgroup_is_not_watched_any_more(kubelet: Kubelet) -> None:
    with CgroupWatch(CPUSET, kubelet.kubepods) as watch:
        before = _kernel_watches(watch)
        for number in range(10):
            folder = CPUSET / kubelet.kubepods / f"pod{number}"
            folder.mkdir()
            assert watch.read().appeared == (f"{kubelet.kubepods}/pod{number}",)
            assert _kernel_watches(watch) == before + 1
            folder.rmdir()
            assert watch.read().vanished == (f"{kubelet.kubepods}/pod{number}",)
        assert _kernel_watches(watch) == before


async def test_a_cgroup_made_again_while_events_were_lost_is_watched_once(
    kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = CPUSET / kubelet.kubepods / "podagain"
    folder.mkdir()
    with CgroupWatch(CPUSET, kubelet.kubepods) as watch:
        before = _kernel_watches(watch)
        for _ in range(3):
            folder.rmdir()
            folder.mkdir()
            with monkeypatch.context() as lost:
                lost.setattr(watch._inotify, "read", _lost(watch))
                assert watch.read().overflowed
        assert _kernel_watches(watch) == before
        (folder / "cpuset.mems").write_text("0\n")
        assert watch.read().written == (f"{kubelet.kubepods}/podagain",)


async def test_a_class_made_again_is_watched_once(kubelet: Kubelet) -> None:
    folder = CPUSET / kubelet.kubepods / "besteffort"
    folder.mkdir(exist_ok=True)
    watch = NewPodWatch(CPUSET, CgroupNaming(Driver.CGROUPFS, kubelet.root))
    try:
        before = _kernel_watches(watch)
        for _ in range(3):
            folder.rmdir()
            folder.mkdir()
            watch.take()
        assert _kernel_watches(watch) == before
        (folder / "podnew").mkdir()
        assert watch.take() == (f"{kubelet.kubepods}/besteffort/podnew",)
    finally:
        watch.close()


def _lost(watch: CgroupWatch) -> Callable[[], bytes]:
    """Reads that lose all events, as when the kernel's queue was full; then there are none."""
    answers = iter((OVERFLOW,))

    def read() -> bytes:
        with suppress(BlockingIOError):
            os.read(watch._inotify.descriptor, 1 << 16)
        return next(answers, b"")

    return read


async def test_an_event_that_does_not_matter_is_dropped(kubelet: Kubelet) -> None:
    with CgroupWatch(CPUSET, kubelet.kubepods) as watch:
        (CPUSET / kubelet.kubepods / "notify_on_release").write_text("0\n")
        assert select.select([watch], [], [], 1)[0]
        assert not watch.collect()
        assert not select.select([watch], [], [], 0)[0]
        (CPUSET / kubelet.kubepods / "cpuset.mems").write_text("0\n")
        assert watch.collect()
        assert watch.read().written == (kubelet.kubepods,)


WITHOUT_INSTANCES = """
import pathlib, sys
from numapin_enforcer.cgroups.watch.inotify import CgroupWatch
limit, root = pathlib.Path("/proc/sys/user/max_inotify_instances"), pathlib.Path(sys.argv[1])
limit.write_text("0")
with CgroupWatch(root, "kubepods") as watch:
    watch.cover(["kubepods"])
    print(watch.problem)
    limit.write_text("1")
    watch.cover(["kubepods"])
    (root / "kubepods" / "pod1").mkdir()
    print(watch.problem, *watch.read().appeared)
"""


def test_a_user_without_inotify_instances_has_cgroups_rescanned(tmp_path: Path) -> None:
    """In a user namespace of its own, whose limit is 0 and then 1."""
    (tmp_path / "kubepods").mkdir()
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-c", WITHOUT_INSTANCES]
    done = subprocess.run([*command, tmp_path], capture_output=True, text=True, check=True)
    refused, working = done.stdout.splitlines()
    assert refused.endswith("raise fs.inotify.max_user_instances")
    assert working.split() == ["kubepods/pod1"]
