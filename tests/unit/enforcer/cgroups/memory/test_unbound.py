"""Where unbound memory of Guaranteed pods is, as it is reported."""

from collections.abc import Collection

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.errors import CgroupVanishedError
from numapin_enforcer.cgroups.memory.unbound import LOOK_SECONDS, MOST_PODS, UnboundMemoryReader
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version, tree_of

MIB = 1 << 20
NAMING = CgroupNaming(Driver.CGROUPFS)
CPUS, MEMS = CpuSet((0, 1)), MemSet((0, 1))


def tree(*paths: str) -> Tree:
    cgroups = (Cgroup(path, CPUS, MEMS, CPUS, MEMS) for path in ("kubepods", *paths))
    return tree_of(Version.V2, "kubepods", cgroups)


class Kernel:
    """The memory of each Guaranteed pod by NUMA node, in MiB."""

    def __init__(self, pods: dict[str, dict[int, int]]) -> None:
        self.used = {f"kubepods/pod{uid}": used for uid, used in pods.items()}
        self.reads = 0

    def numa_stat(self, path: str) -> str:
        self.reads += 1
        if path not in self.used:
            raise CgroupVanishedError(path, "", 2, "gone")
        nodes = " ".join(f"N{node}={count * MIB}" for node, count in self.used[path].items())
        return f"anon {nodes}\nfile N0=0\nkernel_stack N0=99999999999\n"

    @property
    def tree(self) -> Tree:
        return tree(*self.used, "kubepods/burstable", "kubepods/burstable/podb")


def look(
    reader: UnboundMemoryReader, kernel: Kernel, bound: Collection[str] = (), at: float = 0.0
) -> dict[str, dict[int, int]]:
    reader.look(kernel.tree, NAMING, bound, kernel.numa_stat, at)
    return {
        one.pod_uid: {int(node): count // MIB for node, count in one.bytes.items()}
        for one in reader.found
    }


def test_guaranteed_pods_are_read_and_others_are_not() -> None:
    kernel, reader = Kernel({"a": {0: 600, 1: 40}, "s": {0: 63}}), UnboundMemoryReader(4096)
    assert look(reader, kernel) == {"a": {0: 600, 1: 40}}
    assert reader.found[0].to_wire() == {
        "podUID": "a",
        "bytes": {"0": 600 * MIB, "1": 40 * MIB},
    }


def test_a_pod_whose_memory_is_bound_is_left_out() -> None:
    kernel = Kernel({"a": {0: 600}, "b": {1: 70}})
    assert look(UnboundMemoryReader(), kernel, {"a"}) == {"b": {1: 70}}


@pytest.mark.parametrize(
    ("now", "shown"),
    [
        pytest.param({0: 640}, {0: 600}, id="less-than-64-MiB"),
        pytest.param({0: 700}, {0: 700}, id="more"),
        pytest.param({0: 540, 1: 70}, {0: 540, 1: 70}, id="another-node"),
        pytest.param({}, None, id="gone"),
    ],
)
def test_only_large_changes_are_reported(now: dict[int, int], shown: dict[int, int] | None) -> None:
    reader = UnboundMemoryReader()
    look(reader, Kernel({"a": {0: 600}}))
    found = look(reader, Kernel({"a": now}), at=LOOK_SECONDS)
    assert found == ({"a": shown} if shown else {})


def test_an_eighth_of_much_is_no_large_change() -> None:
    reader = UnboundMemoryReader()
    look(reader, Kernel({"a": {0: 8000}}))
    assert look(reader, Kernel({"a": {0: 8900}}), at=LOOK_SECONDS) == {"a": {0: 8000}}


def test_it_is_read_once_a_minute() -> None:
    kernel, reader = Kernel({"a": {0: 600}}), UnboundMemoryReader()
    look(reader, kernel)
    look(reader, kernel, at=LOOK_SECONDS - 1)
    assert kernel.reads == 1
    look(reader, kernel, at=LOOK_SECONDS)
    assert kernel.reads == 2


def test_the_pods_with_most_memory_are_listed_and_the_nodes_with_most() -> None:
    kernel = Kernel({f"p{number:03}": {0: 64 + number} for number in range(MOST_PODS + 3)})
    kernel.used["kubepods/podwide"] = {node: 100 + node for node in range(12)}
    found = look(UnboundMemoryReader(), kernel)
    assert len(found) == MOST_PODS
    assert "p003" not in found
    assert sorted(found["wide"]) == list(range(4, 12))


def test_a_pod_that_vanishes_meanwhile_is_left_out() -> None:
    kernel, reader = Kernel({"a": {0: 600}}), UnboundMemoryReader()
    reader.look(tree("kubepods/podgone", "kubepods/poda"), NAMING, (), kernel.numa_stat, 0.0)
    assert [one.pod_uid for one in reader.found] == ["a"]
