"""Groups of CPUs: computed once for each kind of machine, whatever object describes it."""

from dataclasses import replace
from weakref import ref

from numapin_api.topology import NumaNode
from numapin_operator.placement.cpumanager.cpu_groups import cpu_groups_of
from numapin_operator.placement.masks import NO_CPUS, CpuMask, NumaMask
from support.values.placement import machine

TWO_NODES = machine(8, threads=2, numa_nodes=2)


def test_machines_with_the_same_cpus_share_their_groups() -> None:
    # Other tests may keep an equal machine whose kind was forgotten for newer ones meanwhile.
    first = replace(TWO_NODES, warnings=("of no other test",))
    same = replace(first)
    more_memory = replace(first, numa_nodes=(NumaNode(0, 2 << 30), NumaNode(1, 2 << 30)))
    assert cpu_groups_of(same) is cpu_groups_of(first)
    assert cpu_groups_of(more_memory) is cpu_groups_of(first)


def test_the_groups_of_a_machine_do_not_keep_its_topology() -> None:
    """Each change of a status may bring another topology: none must stay in memory."""
    topology = replace(TWO_NODES, warnings=("one of many",))
    cpu_groups_of(topology)
    kept = ref(topology)
    del topology
    assert kept() is None


def test_a_machine_that_lost_a_cpu_has_groups_of_its_own() -> None:
    fewer = replace(TWO_NODES, cpus=TWO_NODES.cpus[:-1])
    assert cpu_groups_of(fewer).cpus == CpuMask(0b0111_1111)
    assert cpu_groups_of(TWO_NODES).cpus == CpuMask(0b1111_1111)


def test_groups_are_masks_of_cpus() -> None:
    groups = cpu_groups_of(TWO_NODES)
    assert groups.cpus_in(NumaMask(0b10)) == CpuMask(0b1111_0000)
    assert groups.cpus_in(NumaMask(0b11)) == groups.cpus
    assert groups.cpus_in(NumaMask(0b100)) == NO_CPUS
    assert groups.numa_nodes_of(CpuMask(0b0001_1000)) == NumaMask(0b11)
    assert groups.whole_cores(CpuMask(0b0000_0111)) == CpuMask(0b0000_0011)
    assert groups.with_siblings(CpuMask(0b0000_0100)) == CpuMask(0b0000_1100)
