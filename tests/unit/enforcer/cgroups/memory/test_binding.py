"""A container is bound only where its memory fits, and gets back what it had before."""

import math
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.memory.binding import FILE_NAME, BindingTree, SavedMems
from numapin_enforcer.cgroups.memory.use import MemoryNotBoundError, parse_free, parse_numa_stat
from numapin_enforcer.cgroups.memory.writes_during_moves import MoveGate
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.write import Step, Write
from support.fakes.watched_kernel import WatchedModel

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

    def read_numa_stat(self, path: str) -> str:
        assert path == PATH
        return self.numa_stat


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
