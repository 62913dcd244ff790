"""The sampler of a chaos run sees on real cgroups what it is there to see, and nothing else."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_campaigns.sampling.assignment_versions import AssignmentVersion, ContainerKey
from numapin_campaigns.sampling.cgroup_tree import NAME, UNREAD, PodsTree
from numapin_campaigns.sampling.sampler import Reported, Sampler
from numapin_campaigns.sampling.samples import Samples
from numapin_campaigns.sampling.threads import LOOK_SECONDS
from numapin_campaigns.tenants.io_threads import IoThreads
from support.real.cgroups import RealCgroups, online_cpus
from support.real.io_threads import why_without

OWNER: ContainerKey = ("owner", "main")
OWNERS, SIDE, OTHERS = (
    f"{pod}/{digit * 64}"
    for pod, digit in (("podowner", "a"), ("podowner", "b"), ("besteffort/podother", "c"))
)
CONTAINERS = {OWNERS: "main", SIDE: "side", OTHERS: "main"}


class World:
    """Two pods below a kubepods of their own; the owner's container owns the last CPU."""

    def __init__(self, cgroups: RealCgroups, bundles: Path) -> None:
        self._cgroups, self._bundles = cgroups, bundles
        self._folder = cgroups.mounts.cpuset / cgroups.root
        self.everything = online_cpus()
        self.own = CpuSet(sorted(self.everything)[-1:])
        self.shared = self.everything - self.own
        self.reported = Reported()
        self._tree = PodsTree(self._folder, bundles)
        self._sampler = Sampler(self._tree, self.reported)

    def make(self, path: str, cpus: CpuSet) -> None:
        """A container with its cpuset and its bundle, and whatever is above it."""
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            above = "/".join(parts[:depth])
            if not (self._folder / above).exists():
                self._cgroups.make(f"{self._cgroups.root}/{above}")
                self.write(above, self.everything)
                (self._folder / above / "cpuset.mems").write_text("0")
        self.write(path, cpus)
        bundle = self._bundles / parts[-1]
        bundle.mkdir()
        config = {"annotations": {NAME: CONTAINERS[path]}}
        (bundle / "config.json").write_text(json.dumps(config))

    def folder(self, path: str) -> Path:
        return self._folder / path

    def write(self, path: str, cpus: CpuSet) -> None:
        (self._folder / path / "cpuset.cpus").write_text(str(cpus))

    def enter(self, path: str) -> None:
        self._cgroups.enter(f"{self._cgroups.root}/{path}")

    def enter_as(self, path: str, pid: int) -> None:
        (self._folder / path / "cgroup.procs").write_text(str(pid))

    def leave(self, path: str) -> None:
        self._cgroups.leave(f"{self._cgroups.root}/{path}")

    def report(self) -> None:
        """As the status says that the owner has its CPU alone."""
        own = ((OWNER, self.own.mask),)
        self.reported.add(AssignmentVersion(1.0, 3, own, own, self.shared.mask))

    def sample(self) -> Samples:
        self._sampler.sample(float(self._sampler.samples().count))
        return self._sampler.samples()

    def sample_later(self) -> Samples:
        """When the next look at threads is due."""
        wait_until_due = time.monotonic() + LOOK_SECONDS
        while time.monotonic() < wait_until_due:
            os.sched_yield()
        return self.sample()

    def leaves(self) -> list[str]:
        return list(self._tree.leaves)

    def kinds(self) -> list[tuple[str, str]]:
        return [(one.kind.value, one.path) for one in self.sample().anomalies]


@pytest.fixture
def world(root: None, tmp_path: Path) -> Iterator[World]:
    if len(online_cpus()) < 2:
        pytest.skip("needs two CPUs: one is to be owned")
    with RealCgroups() as cgroups:
        made = World(cgroups, tmp_path)
        made.make(OWNERS, made.own)
        made.make(OTHERS, made.shared)
        made.enter(OWNERS)
        made.enter(OTHERS)
        made.report()
        yield made


def test_a_sample_as_reported_is_counted_and_not_recorded(world: World) -> None:
    found = world.sample()
    assert (found.count, found.with_exclusive, found.anomalies) == (1, 1, ())
    assert found.exclusive_seen == {OWNER}
    assert {(one.path, one.container) for one in found.seen} == {(OWNERS, "main"), (OTHERS, "main")}


def test_another_container_on_the_exclusive_cpu_is_recorded(world: World) -> None:
    world.sample()
    world.write(OTHERS, world.everything)
    (anomaly,) = world.sample().anomalies
    assert (anomaly.kind, anomaly.container, anomaly.path) == ("Overlap", OWNER, OTHERS)
    assert (anomaly.found, anomaly.started) == (world.everything.mask, True)


def test_another_container_of_the_same_pod_is_no_exception(world: World) -> None:
    world.make(SIDE, world.everything)
    world.enter(SIDE)
    assert world.kinds() == [("Overlap", SIDE)]


def test_a_container_without_a_task_is_no_anomaly(world: World) -> None:
    world.make(SIDE, world.everything)
    assert world.kinds() == []
    world.leave(OTHERS)
    world.write(OTHERS, world.everything)
    assert world.kinds() == []


def test_an_ended_exclusive_container_has_no_exclusive_cpus(world: World) -> None:
    world.leave(OWNERS)
    world.write(OTHERS, world.everything)
    found = world.sample()
    assert (found.with_exclusive, found.exclusive_seen, found.anomalies) == (0, frozenset(), ())


def test_a_container_is_exclusive_until_a_version_without_it_is_received(world: World) -> None:
    world.reported.add(AssignmentVersion(2.0, 4, (), (), world.everything.mask))
    world.write(OTHERS, world.everything)
    assert world.kinds() == []


def test_an_exclusive_container_on_other_cpus_has_lost_its_pin(world: World) -> None:
    world.write(OWNERS, world.everything)
    assert world.kinds() == [("LostPin", OWNERS)]


def test_two_containers_on_one_cpu_outside_the_shared_pool_are_an_anomaly(world: World) -> None:
    world.reported.add(AssignmentVersion(2.0, 4, ((OWNER, world.own.mask),), (), world.shared.mask))
    world.write(OTHERS, world.own)
    assert [kind for kind, _ in world.kinds()] == ["TwoExclusive"]


def test_a_cgroup_that_ran_and_was_removed_is_recorded(world: World) -> None:
    world.sample()
    world.leave(OTHERS)
    (world._folder / OTHERS).rmdir()
    gone = [one.path for one in world.sample().seen if one.gone_at is not None]
    assert gone == [OTHERS]


def test_a_container_with_only_the_runtimes_process_has_not_started(
    world: World, tmp_path: Path
) -> None:
    """As `runc init` is: a process of that program waits in the cgroup for its turn."""
    runc = tmp_path / "runc"
    shutil.copy("/bin/sleep", runc)
    world.make(SIDE, world.everything)
    with subprocess.Popen([runc, "600"]) as setting_up:
        world.enter_as(SIDE, setting_up.pid)
        (anomaly,) = world.sample().anomalies
        setting_up.kill()
    assert (anomaly.path, anomaly.started) == (SIDE, False)


@pytest.mark.skipif(bool(why_without()), reason=why_without() or "-")
def test_a_thread_of_io_uring_that_its_cgroup_does_not_hold_is_an_anomaly(
    world: World, tmp_path: Path
) -> None:
    world.write(OTHERS, world.everything)
    with IoThreads(tmp_path, world.folder(OTHERS)) as tenant:
        tenant.do("ring")
        world.write(OTHERS, world.shared)
        assert world.kinds() == []
        worker = tenant.worker()
        (anomaly,) = world.sample_later().anomalies
        assert (anomaly.kind, anomaly.container, anomaly.path) == ("Thread", OWNER, OTHERS)
        assert anomaly.found & world.own.mask
        assert anomaly.other.startswith("iou-wrk-")
        assert os.sched_getaffinity(worker) & set(world.own)


def test_cgroups_of_the_run_that_nobody_enters_are_not_read(world: World) -> None:
    folder = world.folder(OTHERS) / UNREAD
    folder.mkdir()
    (folder / "1").mkdir()
    world.sample()
    assert UNREAD not in "".join(world.leaves())
    for one in (folder / "1", folder):
        one.rmdir()
