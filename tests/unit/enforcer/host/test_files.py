"""The files of cgroups beside the kubelet's, and the processes that no set restricts."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.errors import CgroupError, CgroupVanishedError
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.host.files import MOST_CGROUPS, HostFiles
from numapin_enforcer.host.root_tasks import RootTasks
from numapin_enforcer.host.watch import HostWatch
from support.fakes.manual_clock import ManualClock

POD_TREES = ("kubepods", "kubepods.slice")
EFFECTIVE = {1: "cpuset.effective_cpus", 2: "cpuset.cpus.effective"}


class Top:
    """A folder with the files of cgroups."""

    def __init__(self, folder: Path, version: Version) -> None:
        self.mount, self.sysfs, self.procfs = (folder / one for one in ("cgroup", "sys", "proc"))
        self.version = version
        self.make("", "", "0-3")
        self.put(self.sysfs / "devices/system/cpu/possible", "0-7")
        self.mounts = Mounts(version, self.mount, None)
        self.files = HostFiles(self.mounts, self.sysfs)

    def make(self, path: str, cpus: str, effective: str = "", populated: int = 1) -> None:
        folder = self.mount / path
        self.put(folder / "cpuset.cpus", cpus)
        self.put(folder / EFFECTIVE[self.version], effective or cpus)
        self.put(folder / "cgroup.events", f"populated {populated}\nfrozen 0")

    def put(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")

    def program(self, number: int, name: str, flags: int = 0x400100) -> None:
        stat = f"{number} ({name}) S 1 1 1 0 -1 {flags} 0 0"
        self.put(self.procfs / str(number) / "stat", stat)


@pytest.fixture(params=list(Version), ids=lambda one: f"v{one}")
def top(request: pytest.FixtureRequest, tmp_path: Path) -> Top:
    return Top(tmp_path, request.param)


@pytest.fixture
def top_v2(tmp_path: Path) -> Top:
    return Top(tmp_path, Version.V2)


def paths(top: Top, *pod_trees: str) -> list[str]:
    return sorted(top.files.read(pod_trees or POD_TREES))


def test_pods_are_left_out_and_so_are_those_of_the_other_driver(top: Top) -> None:
    for path in ("kubepods/burstable", "kubepods.slice", "system.slice", "docker/a"):
        top.make(path, "0-3")
    top.make("docker", "0-3")
    below = ["docker/a"] if top.version is Version.V1 else []
    assert paths(top) == sorted(["docker", "system.slice", *below])


def test_what_holds_the_pods_is_left_out_and_not_what_is_beside_them(top: Top) -> None:
    for path in ("a.slice", "a.slice/a-kubepods.slice", "a.slice/a-b.slice", "c"):
        top.make(path, "0-3")
    assert paths(top, "a.slice/a-kubepods.slice") == ["a.slice/a-b.slice", "c"]


def test_a_container_that_a_runtime_made_at_the_top_is_none_of_the_host(top: Top) -> None:
    top.make(f"kubepods-pod1.slice:cri-containerd:{'a' * 64}", "0-3")
    assert paths(top) == []


def test_units_without_processes_are_left_out_but_for_slices(top_v2: Top) -> None:
    for path in ("a.mount", "a.service", "a.slice", "a.scope", "a"):
        top_v2.make(path, "", "0-3", populated=0)
    top_v2.make("fuse.mount", "", "0-3")
    assert paths(top_v2) == ["a", "a.scope", "a.slice", "fuse.mount"]


def test_a_cgroup_without_a_set_of_its_own_has_what_its_parent_has(top_v2: Top) -> None:
    (top_v2.mount / "a.slice").mkdir()
    found = top_v2.files.read(POD_TREES)["a.slice"]
    assert (found.has_cpuset, found.cpus, found.effective_cpus) == (
        False,
        CpuSet(),
        CpuSet(range(4)),
    )


def test_on_v1_a_cgroup_without_cpus_holds_no_process(tmp_path: Path) -> None:
    top = Top(tmp_path, Version.V1)
    top.make("new", "")
    assert paths(top) == []
    assert top.files.every_cpu() == CpuSet(range(4)), "others are refused there"


def test_on_v2_all_cpus_are_those_that_the_machine_may_have(top_v2: Top) -> None:
    assert top_v2.files.every_cpu() == CpuSet(range(8))
    (top_v2.sysfs / "devices/system/cpu/possible").unlink()
    with pytest.raises(CgroupError, match="possible"):
        top_v2.files.every_cpu()


def test_systemd_is_known_by_the_cgroup_of_its_own(top: Top) -> None:
    assert not top.files.is_systemd
    top.make("init.scope", "")
    assert top.files.is_systemd is (top.version is Version.V2)


@pytest.mark.parametrize(
    ("path", "is_unit"),
    [
        ("system.slice", True),
        ("a/dev-disk\\x2dby.mount", True),
        ("docker", False),
        ("a b.slice", False),
        ("ü.slice", False),
        (".slice", False),
    ],
)
def test_names_of_units(top_v2: Top, path: str, is_unit: bool) -> None:
    assert top_v2.files.is_unit(path) is is_unit


def test_more_cgroups_than_are_read_is_an_error(top_v2: Top) -> None:
    for number in range(MOST_CGROUPS + 1):
        (top_v2.mount / str(number)).mkdir()
    with pytest.raises(CgroupError, match="more than 4096"):
        paths(top_v2)


def test_a_write_to_what_is_gone_says_so(top_v2: Top) -> None:
    with pytest.raises(CgroupVanishedError):
        top_v2.files.write("gone", CpuSet((1,)))
    top_v2.make("a", "")
    top_v2.files.write("a", CpuSet((1, 2)))
    assert (top_v2.mount / "a/cpuset.cpus").read_text() == "1-2\n"


def test_programs_are_named_and_kernel_threads_are_not(top_v2: Top) -> None:
    top_v2.program(2, "kthreadd", 0x208040)
    top_v2.program(7, "a) S (b\n")
    top_v2.put(top_v2.mount / "cgroup.procs", "0\n2\n7\n8")
    roots = RootTasks(top_v2.mounts, top_v2.procfs)
    assert roots.look(("",)) == ("a) S (b? (7)",)
    (top_v2.procfs / "2/stat").unlink()
    assert roots.look(("",)) == ("a) S (b? (7)",), "a thread is not looked at again"


def test_few_of_many_programs_are_named(top_v2: Top) -> None:
    for number in range(10, 1010):
        top_v2.program(number, f"p{number}")
    top_v2.put(top_v2.mount / "cgroup.procs", "\n".join(map(str, range(10, 1010))))
    assert RootTasks(top_v2.mounts, top_v2.procfs).look(("",)) == (
        "p10 (10)",
        "p11 (11)",
        "p12 (12)",
    )


async def test_writes_and_new_cgroups_are_events(top_v2: Top) -> None:
    top_v2.make("a", "")
    watch, happened, clock = HostWatch(top_v2.mount), asyncio.Event(), ManualClock()
    asyncio.get_running_loop().add_reader(watch.fileno(), happened.set)
    watch.cover(("", "gone"), ("a", "gone"))

    async def is_event(act: Callable[[], object]) -> None:
        watch.drain()
        happened.clear()
        act()
        async with asyncio.timeout(30):
            await happened.wait()

    await is_event(lambda: top_v2.files.write("a", CpuSet((1,))))
    await is_event(lambda: top_v2.make("b", ""))
    watch.cover(("",), ("b",))
    await is_event(lambda: top_v2.files.write("b", CpuSet((1,))))
    watch.drain()
    await clock.run_tasks()
    happened.clear()
    top_v2.files.write("a", CpuSet((2,)))
    await clock.run_tasks()
    assert not happened.is_set(), "it is watched no more"
    asyncio.get_running_loop().remove_reader(watch.fileno())
    watch.close()
