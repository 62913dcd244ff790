"""The hardware is discovered again when CPUs come or go."""

from pathlib import Path

import pytest

from numapin_enforcer.hardware.hotplug import Machine


def test_a_cpu_that_goes_offline_changes_the_topology(tmp_path: Path) -> None:
    cpu = tmp_path / "devices/system/cpu"
    for number in range(2):
        (cpu / f"cpu{number}").mkdir(parents=True)
    (cpu / "online").write_text("0-1\n")
    machine = Machine(tmp_path, Path("/proc"))
    assert str(machine.topology.online) == "0-1"
    assert not machine.rescan()
    (cpu / "online").write_text("0\n")
    assert machine.rescan()
    assert str(machine.topology.online) == "0"
    assert not machine.rescan()


def numa_machine(root: Path, pages: dict[int, int]) -> Path:
    """Two CPUs, and NUMA nodes with so many huge pages of 2 MiB, all of them free."""
    for cpu in range(2):
        (root / f"devices/system/cpu/cpu{cpu}").mkdir(parents=True)
    (root / "devices/system/cpu/online").write_text("0-1\n")
    nodes = root / "devices/system/node"
    for node, count in pages.items():
        (nodes / f"node{node}/hugepages/hugepages-2048kB").mkdir(parents=True)
        (nodes / f"node{node}/hugepages/hugepages-1048576kB").mkdir()
        (nodes / f"node{node}/cpulist").write_text("0-1\n" if node == 0 else "\n")
        (nodes / f"node{node}/hugepages/hugepages-1048576kB/nr_hugepages").write_text("0\n")
        set_pages(root, node, count, count)
    (nodes / "online").write_text(f"0-{max(pages)}\n")
    return root


def set_pages(root: Path, node: int, count: int, free: int) -> None:
    folder = root / f"devices/system/node/node{node}/hugepages/hugepages-2048kB"
    (folder / "nr_hugepages").write_text(f"{count}\n")
    (folder / "free_hugepages").write_text(f"{free}\n")


def test_free_huge_pages_are_read_each_time(tmp_path: Path) -> None:
    machine = Machine(numa_machine(tmp_path, {0: 8, 1: 4, 2: 0}), Path("/proc"))
    assert machine.free_hugepages() == {0: {"2Mi": 8}, 1: {"2Mi": 4}}
    set_pages(tmp_path, 1, 4, 1)
    assert machine.free_hugepages() == {0: {"2Mi": 8}, 1: {"2Mi": 1}}
    assert not machine.rescan(pages=True)


def test_huge_pages_that_are_allocated_later_change_the_topology(tmp_path: Path) -> None:
    machine = Machine(numa_machine(tmp_path, {0: 0}), Path("/proc"))
    set_pages(tmp_path, 0, 16, 16)
    assert not machine.rescan()
    assert machine.rescan(pages=True)
    assert machine.topology.numa_nodes[0].hugepages["2Mi"] == 16
    assert machine.free_hugepages() == {0: {"2Mi": 16}}


def test_a_kernel_without_numa_nodes_has_huge_pages_of_the_machine(tmp_path: Path) -> None:
    (tmp_path / "devices/system/cpu/cpu0").mkdir(parents=True)
    (tmp_path / "devices/system/cpu/online").write_text("0\n")
    folder = tmp_path / "kernel/mm/hugepages/hugepages-2048kB"
    folder.mkdir(parents=True)
    (folder / "nr_hugepages").write_text("4\n")
    (folder / "free_hugepages").write_text("3\n")
    assert Machine(tmp_path, Path("/proc")).free_hugepages() == {0: {"2Mi": 3}}


def test_a_file_that_nobody_can_read_reports_nothing(tmp_path: Path) -> None:
    machine = Machine(numa_machine(tmp_path, {0: 8}), Path("/proc"))
    folder = tmp_path / "devices/system/node/node0/hugepages/hugepages-2048kB"
    (folder / "free_hugepages").write_text("many\n")
    assert machine.free_hugepages() == {}


MIB = 1 << 20


def set_memory(root: Path, node: int, size_bytes: int) -> None:
    text = f"Node {node} MemTotal: {size_bytes >> 10} kB\n"
    (root / f"devices/system/node/node{node}/meminfo").write_text(text)


@pytest.mark.parametrize("change", [1 << 30, -(1 << 30), 128 * MIB, -MIB])
def test_memory_that_is_added_or_removed_changes_the_topology(tmp_path: Path, change: int) -> None:
    numa_machine(tmp_path, {0: 0, 1: 0})
    for node in (0, 1):
        set_memory(tmp_path, node, 4 << 30)
    machine = Machine(tmp_path, Path("/proc"))
    assert not machine.rescan(pages=True)
    set_memory(tmp_path, 1, (4 << 30) + change)
    assert not machine.rescan(), "only a resync reads as much"
    assert machine.rescan(pages=True)
    assert [one.memory_bytes for one in machine.topology.numa_nodes] == [
        4 << 30,
        (4 << 30) + change,
    ]
    assert not machine.rescan(pages=True)


def test_single_pages_change_nothing_until_they_add_up(tmp_path: Path) -> None:
    numa_machine(tmp_path, {0: 0})
    set_memory(tmp_path, 0, 4 << 30)
    machine = Machine(tmp_path, Path("/proc"))
    before = machine.topology
    for pages in (-1, 1, 200, 255):
        set_memory(tmp_path, 0, (4 << 30) + pages * 4096)
        assert not machine.rescan(pages=True)
    assert machine.topology is before
    set_memory(tmp_path, 0, (4 << 30) + MIB)
    assert machine.rescan(pages=True)


def test_memory_of_a_kernel_without_numa_nodes_is_noticed(tmp_path: Path) -> None:
    sysfs, procfs = tmp_path / "sys", tmp_path / "proc"
    (sysfs / "devices/system/cpu/cpu0").mkdir(parents=True)
    procfs.mkdir()
    (sysfs / "devices/system/cpu/online").write_text("0\n")
    (procfs / "meminfo").write_text(f"MemTotal: {4 << 20} kB\n")
    machine = Machine(sysfs, procfs)
    (procfs / "meminfo").write_text(f"MemTotal: {6 << 20} kB\n")
    assert machine.rescan(pages=True)
    assert machine.topology.numa_nodes[0].memory_bytes == 6 << 30
