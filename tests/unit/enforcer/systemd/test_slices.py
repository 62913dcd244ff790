"""What systemd must have for the kubelet's slices."""

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.systemd.interface import SliceSets
from numapin_enforcer.systemd.slices import qos_slices, slice_sets, unit_name

NAMING = CgroupNaming(Driver.SYSTEMD)
ROOT = "kubepods.slice"
BURSTABLE = f"{ROOT}/kubepods-burstable.slice"
BEST_EFFORT = f"{ROOT}/kubepods-besteffort.slice"
POD = f"{BEST_EFFORT}/kubepods-besteffort-pod1.slice"
SHARED = CpuSet.parse("0-1")
MEMS = MemSet((0,))
NARROW = SliceSets(SHARED, MEMS)


def enforced(version: Version = Version.V2, **effective: str) -> tuple[dict[str, Desired], Tree]:
    """A tree in which every cgroup should have the shared CPUs, and asked for them."""
    cgroups: dict[str, Cgroup] = {}
    desired: dict[str, Desired] = {}
    for path in (ROOT, BURSTABLE, BEST_EFFORT, POD):
        word = path.removesuffix(".slice").rpartition("-")[2]
        has = CpuSet.parse(effective[word]) if word in effective else SHARED
        cgroups[path] = Cgroup(path, SHARED, MEMS, has, MEMS)
        desired[path] = Desired(SHARED, MEMS)
    tree = Tree(version, ROOT, cgroups)
    return desired, tree


def test_both_classes_get_what_they_asked_for_and_have() -> None:
    assert slice_sets(*enforced(), NAMING) == {BURSTABLE: NARROW, BEST_EFFORT: NARROW}


def test_a_slice_stays_as_before_until_the_kernel_has_its_cpus() -> None:
    sets = slice_sets(*enforced(besteffort="0-3"), NAMING)
    assert sets == {BURSTABLE: NARROW, BEST_EFFORT: None}


def test_systemd_gets_nothing_if_it_does_not_write_cpusets() -> None:
    _, tree = enforced(Version.V1)
    assert not list(qos_slices(tree, NAMING))
    _, tree = enforced()
    assert not list(qos_slices(tree, CgroupNaming(Driver.CGROUPFS)))


@pytest.mark.parametrize(
    ("root", "unit"),
    [
        ("/", "kubepods-besteffort.slice"),
        ("/kubelet", "kubelet-kubepods-besteffort.slice"),
        ("/my-lab", "my_lab-kubepods-besteffort.slice"),
    ],
)
def test_a_units_name_is_the_last_part_of_its_cgroup(root: str, unit: str) -> None:
    naming = CgroupNaming(Driver.SYSTEMD, root)
    tree = Tree(Version.V2, naming.root, dict.fromkeys([f"{naming.root}/{unit}"]))  # type: ignore[arg-type]
    assert [unit_name(path) for path in qos_slices(tree, naming)] == [unit]
