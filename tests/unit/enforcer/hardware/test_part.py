"""A node that may use a part of its machine is planned with that part."""

from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.hardware.compact import compact_topology
from numapin_api.hardware.machine_file import format_machine, parse_machine
from numapin_api.hardware.restore import restore_topology
from numapin_api.hardware.status import TopologyStatus
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_enforcer.cgroups.tree import AllowedSets
from numapin_enforcer.hardware.hotplug import Machine
from numapin_enforcer.hardware.part import NOTHING, Withheld, part_of, withheld_from

WHOLE = Topology(
    tuple(Cpu(cpu, cpu % 4, 0, 0, cpu % 4 // 2) for cpu in range(8)),
    (NumaNode(0, 2**30, {"2Mi": 8}, (10, 20)), NumaNode(1, 2**30, {"2Mi": 4}, (20, 10))),
    warnings=("firmware",),
)


def allowed(cpus: str = "", mems: str = "") -> AllowedSets:
    return AllowedSets(CpuSet.parse(cpus), MemSet.parse(mems), "by a slice", "by another")


def part(cpus: str = "", mems: str = "") -> Topology:
    return part_of(WHOLE, withheld_from(WHOLE, allowed(cpus, mems)))


def test_a_machine_without_limits_is_whole() -> None:
    assert part_of(WHOLE, NOTHING) is WHOLE
    assert part("0-7", "0-1") is WHOLE
    assert part("0-31", "0-3") is WHOLE


def test_cpus_that_pods_may_not_use_are_no_part_of_the_node() -> None:
    found = part("2-7")
    assert (str(found.online), str(found.offline), str(found.withheld)) == ("2-7", "", "0-1")
    assert [str(cpus) for cpus in found.core_cpus.values()] == ["2,6", "3,7", "4", "5"]
    assert found.warnings == ("planned with CPU 2-7 of 0-7: by a slice", "firmware")
    assert found.numa_nodes == WHOLE.numa_nodes


def test_memory_that_pods_may_not_use_is_no_part_of_the_node() -> None:
    found = part(mems="1")
    assert (str(found.online), str(found.mems)) == ("0-7", "1")
    assert [one.hugepages for one in found.numa_nodes] == [{}, {"2Mi": 4}]
    assert found.warnings[0] == "planned with the memory of NUMA node 1 of 0-1: by another"


def test_a_limit_that_leaves_nothing_is_none() -> None:
    """It is out of date: the kernel gives a cgroup what its parent has then."""
    assert part("8-9", "2") is WHOLE
    assert part_of(WHOLE, Withheld(WHOLE.online, WHOLE.mems)) is WHOLE


def test_the_part_is_in_the_status_and_in_a_file() -> None:
    found = part("2-7", "1")
    wire = compact_topology(found)
    assert wire["withheld"] == "0-1"
    assert "withheld" not in compact_topology(WHOLE)
    restored = restore_topology(TopologyStatus.model_validate(wire))
    assert (restored.withheld, restored.online) == (found.withheld, found.online)
    parsed = parse_machine(format_machine(found), "file")
    assert (parsed.withheld, parsed.cpus) == (found.withheld, found.cpus)


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    cpu = tmp_path / "devices/system/cpu"
    for number in range(8):
        (cpu / f"cpu{number}").mkdir(parents=True)
    (cpu / "online").write_text("0-6\n")
    return tmp_path


def test_what_pods_may_use_is_read_at_each_resync(sysfs: Path) -> None:
    sets = [allowed("4-7")]
    machine = Machine(sysfs, Path("/proc"), lambda: sets[-1])
    assert str(machine.topology.online) == "4-6"
    assert machine.limits == "planned with CPU 4-6 of 0-6: by a slice"
    before = machine.topology
    assert not machine.rescan(pages=True)
    assert machine.topology is before
    sets.append(allowed("2-7"))
    assert not machine.rescan()
    assert machine.rescan(pages=True)
    assert str(machine.topology.online) == "2-6"
    sets.append(allowed())
    assert machine.rescan(pages=True)
    assert (str(machine.topology.online), machine.limits) == ("0-6", "")


def test_a_cpu_that_comes_online_counts_until_the_limits_are_read_again(sysfs: Path) -> None:
    """The kernel updates cpusets a moment later."""
    sets = [allowed("4-6")]
    machine = Machine(sysfs, Path("/proc"), lambda: sets[-1])
    (sysfs / "devices/system/cpu/online").write_text("0-7\n")
    assert machine.rescan()
    assert str(machine.topology.online) == "4-7"
    assert machine.rescan(pages=True)
    assert str(machine.topology.online) == "4-6"
