"""A container is bound only where its memory fits, and gets back what it had before."""

import math
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_campaigns.histories.kernel.watched import WatchedModel
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.memory.binding import FILE_NAME, BindingTree, SavedMems
from numapin_enforcer.cgroups.memory.stat_files import read_hugetlb_stat
from numapin_enforcer.cgroups.memory.use import (
    MemoryNotBoundError,
    NodeMemory,
    parse_free,
    parse_huge_stat,
    parse_numa_stat,
)
from numapin_enforcer.cgroups.memory.writes_during_moves import MoveGate
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.write import Step, Write

PATH = "kubepods/pod1"
BIND = Write(PATH, MemSet((1,)), Step.MOVE_MEMORY, may_block=True)
V1 = """total=300 N0=200 N1=100
file=100 N0=100 N1=0
hierarchical_total=300 N0=200 N1=100
hierarchical_file=100 N0=100 N1=0
"""
V2 = """anon N0=409600 N1=409600
file N0=409600 N1=0
kernel_stack N0=999 N1=0
shmem N0=4096 N1=0
"""
MIB = 1 << 20
HUGE = f"""hugetlb.1GB total=0 N0=0 N1=0
hugetlb.2MB total={50 * MIB} N0={48 * MIB} N1={2 * MIB}
"""
MEMINFO = """Node 1 MemTotal:        4000 kB
Node 1 MemFree:          {free} kB
Node 1 Active(file):      900 kB
Node 1 Inactive(file):    100 kB
"""


class Kernel(WatchedModel):
    """Two NUMA nodes, and a cgroup with 800 KiB on node 0."""

    def __init__(self) -> None:
        super().__init__(Version.V1, CpuSet(range(2)), MemSet((0, 1)))
        self.make(PATH)
        self.groups[PATH].cpus, self.groups[PATH].mems = CpuSet(range(2)), MemSet((0, 1))
        self.numa_stat = V2
        self.huge = ""

    def read_numa_stat(self, path: str) -> str:
        assert path == PATH
        return self.numa_stat

    def read_hugetlb_stat(self, path: str) -> str:
        assert path == PATH
        return self.huge


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


def free_on_node_1(sysfs: Path, kibibytes: int) -> None:
    folder = sysfs / "devices/system/node/node1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meminfo").write_text(MEMINFO.format(free=kibibytes))


def test_memory_is_counted_by_node() -> None:
    assert parse_numa_stat(V1, 4096) == {0: 819200, 1: 409600}
    assert parse_numa_stat(V2, 4096) == {0: 819200, 1: 409600}
    assert parse_numa_stat("", 4096) == parse_numa_stat("anon garbage", 4096) == {}
    assert parse_free(MEMINFO.format(free=9)) == 109 * 1024


def test_what_does_not_fit_is_not_bound_and_the_message_has_numbers(
    kernel: Kernel, tmp_path: Path
) -> None:
    kernel.numa_stat = V2.replace("409600", str(400 << 20))
    free_on_node_1(tmp_path, 500 * 1024)
    tree = BindingTree(kernel, SavedMems(tmp_path), MoveGate(), tmp_path, math.inf)
    with pytest.raises(MemoryNotBoundError, match=r"800 MiB on other .* 500 MiB are free"):
        tree.write(BIND)
    assert kernel.groups[PATH].mems == MemSet((0, 1))
    free_on_node_1(tmp_path, 900 * 1024)
    tree.write(BIND)
    assert kernel.groups[PATH].mems == MemSet((1,))


def test_what_is_too_much_to_move_at_once_is_not_bound(kernel: Kernel, tmp_path: Path) -> None:
    kernel.numa_stat = V2.replace("409600", str(400 << 20))
    free_on_node_1(tmp_path, 900 * 1024)
    found = SavedMems(tmp_path)
    with pytest.raises(MemoryNotBoundError, match=r"has 800 MiB .* at most 799 MiB .*memory\)"):
        BindingTree(kernel, found, MoveGate(), tmp_path, 799 << 20).write(BIND)
    assert kernel.groups[PATH].mems == MemSet((0, 1))
    assert not found.mems
    BindingTree(kernel, found, MoveGate(), tmp_path, 801 << 20).write(BIND)
    assert kernel.groups[PATH].mems == MemSet((1,))
    back = Write(PATH, MemSet((0, 1)), Step.MOVE_MEMORY, may_block=True)
    BindingTree(kernel, found, MoveGate(), tmp_path, 0).write(back)


def free_huge_pages_on_node_1(sysfs: Path, count: int) -> None:
    folder = sysfs / "devices/system/node/node1/hugepages/hugepages-2048kB"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "free_hugepages").write_text(f"{count}\n")


@pytest.mark.parametrize(
    ("free_mib", "free_pages", "why"),
    [
        pytest.param(900, 24, "", id="both fit"),
        pytest.param(900, 23, r"48 MiB in huge pages .* only 46 MiB in huge pages", id="too few"),
        pytest.param(0, 512, r"800 MiB on other .* only 0 MiB are free", id="free huge pages only"),
    ],
)
def test_huge_pages_fit_only_where_enough_of_their_size_are_free(
    kernel: Kernel, tmp_path: Path, free_mib: int, free_pages: int, why: str
) -> None:
    kernel.numa_stat, kernel.huge = V2.replace("409600", str(400 * MIB)), HUGE
    free_on_node_1(tmp_path, free_mib * 1024 - 100)
    free_huge_pages_on_node_1(tmp_path, free_pages)
    tree = BindingTree(kernel, SavedMems(tmp_path), MoveGate(), tmp_path, math.inf)
    if not why:
        tree.write(BIND)
    else:
        with pytest.raises(MemoryNotBoundError, match=why):
            tree.write(BIND)
    assert (kernel.groups[PATH].mems == MemSet((1,))) == (not why)


def test_huge_pages_count_for_what_is_moved_at_once(kernel: Kernel, tmp_path: Path) -> None:
    kernel.numa_stat, kernel.huge = "", HUGE
    free_huge_pages_on_node_1(tmp_path, 512)
    with pytest.raises(MemoryNotBoundError, match=r"has 48 MiB .* at most 40 MiB"):
        BindingTree(kernel, SavedMems(tmp_path), MoveGate(), tmp_path, 40 * MIB).write(BIND)
    BindingTree(kernel, SavedMems(tmp_path), MoveGate(), tmp_path, 48 * MIB).write(BIND)
    assert kernel.groups[PATH].mems == MemSet((1,))


@pytest.mark.parametrize(
    ("version", "text"),
    [
        pytest.param(Version.V1, f"total=0 N0=0\nhierarchical_total={MIB} N0={MIB}\n", id="v1"),
        pytest.param(Version.V2, f"total={MIB} N0={MIB}\n", id="v2"),
    ],
)
def test_huge_pages_are_read_with_those_of_the_descendants(
    tmp_path: Path, version: Version, text: str
) -> None:
    folder, mounts = tmp_path / PATH, Mounts(version, tmp_path, None, hugetlb=tmp_path)
    assert read_hugetlb_stat(mounts, PATH) == ""
    folder.mkdir(parents=True)
    (folder / "hugetlb.2MB.numa_stat").write_text(text)
    (folder / "hugetlb.2MB.current").write_text("9")
    assert parse_huge_stat(read_hugetlb_stat(mounts, PATH)) == {2 * MIB: {0: MIB}}
    assert read_hugetlb_stat(Mounts(version, tmp_path, None), PATH) == ""


def test_huge_pages_are_counted_by_size_and_node() -> None:
    found = {2 * MIB: {0: 48 * MIB, 1: 2 * MIB}, 1024 * MIB: {0: 0, 1: 0}}
    assert parse_huge_stat(HUGE) == found
    assert NodeMemory({1: 5}, found).total == {0: 48 * MIB, 1: 5 + 2 * MIB}


def test_counts_of_huge_pages_that_were_moved_are_not_believed(
    kernel: Kernel, tmp_path: Path
) -> None:
    """As Linux 6.1 said it after 48 MiB had been moved from node 1 to node 0, and freed there."""
    freed = "hugetlb.2MB total=50331648 N0=18446744073659219968 N1=100663296"
    assert parse_huge_stat(freed) == {}
    kernel.huge = HUGE
    free_huge_pages_on_node_1(tmp_path, 512)
    found = SavedMems(tmp_path)
    BindingTree(kernel, found, MoveGate(), tmp_path, 48 * MIB + MIB).write(BIND)
    free_huge_pages_on_node_1(tmp_path, 0)
    BindingTree(kernel, found, MoveGate(), tmp_path, 48 * MIB).write(BIND)


def test_without_a_memory_controller_or_a_numa_node_in_sysfs_nothing_is_refused(
    kernel: Kernel, tmp_path: Path
) -> None:
    BindingTree(kernel, SavedMems(tmp_path), MoveGate(), tmp_path, math.inf).write(BIND)
    kernel.numa_stat = ""
    free_on_node_1(tmp_path, 0)
    BindingTree(kernel, SavedMems(tmp_path), MoveGate(), tmp_path, math.inf).write(BIND)
    assert kernel.groups[PATH].mems == MemSet((1,))


def test_what_a_cgroup_had_first_is_on_disk_before_it_is_bound(
    kernel: Kernel, tmp_path: Path
) -> None:
    kernel.before_write = lambda _: seen.append(SavedMems(tmp_path).mems)
    seen: list[object] = []
    found = SavedMems(tmp_path)
    tree = BindingTree(kernel, found, MoveGate(), tmp_path, math.inf)
    tree.write(BIND)
    tree.write(Write(PATH, MemSet((0,)), Step.MOVE_MEMORY, may_block=True))
    assert seen == [{PATH: MemSet((0, 1))}] * 2
    found.drop({PATH})
    assert SavedMems(tmp_path).mems == {}


def test_what_cannot_be_saved_is_not_bound(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    tree = BindingTree(kernel, SavedMems(tmp_path / "file"), MoveGate(), tmp_path, math.inf)
    with pytest.raises(CgroupError, match="could not be saved in the state folder"):
        tree.write(BIND)
    assert kernel.groups[PATH].mems == MemSet((0, 1))


@pytest.mark.parametrize("content", ["{", "[" * 10_000, '{"a": 1}', "[]", '{"a": "x"}'])
def test_a_damaged_file_is_ignored(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE_NAME).write_text(content)
    assert SavedMems(tmp_path).mems == {}
