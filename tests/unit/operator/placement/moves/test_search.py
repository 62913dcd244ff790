from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.hardware.places import Near
from numapin_api.schema.plain_assignment import ContainerDevices, DeviceCount, DevicesStatus
from numapin_api.topology import Topology
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import (
    Node,
    NodeDevices,
    PlacementError,
    PodAllocation,
    PodView,
    Searched,
    SearchSpace,
    fewest_moves,
    resolve,
)
from numapin_operator.placement.masks import CpuMask
from support.values.placement import GIB, machine, pod, policy, resources

ALIGNED = {"policy": "SingleNUMANode"}
MEMORY = {"policy": "Static", "reserved": [{"numaNode": 0, "memory": "1Gi"}]}


class Place:
    """A node whose pods have the CPUs that a test says, and searches on it."""

    def __init__(self, machine_: Topology, **fields: object) -> None:
        self.policy = resolve(machine_, policy(**{"topology": ALIGNED} | fields))
        self.node, self.pods = Node(self.policy), dict[str, PodView]()

    def hold(self, name: str, cpus: str, memory: str = "64Mi") -> None:
        """Have a pod run on these CPUs, with its memory where the policy binds it there."""
        wanted = CpuSet.parse(cpus)
        view = pod(name, str(len(wanted)), memory=memory)
        alone = Node(self.policy)
        alone.cpus.claim(alone.cpus.free & ~CpuMask(wanted.mask))
        alone.cpus.shared |= CpuMask(1 << 500)
        self.node.adopt(alone.place(view))
        self.pods[view.uid] = view

    def search(
        self, demand: PodView, *, moves_memory: bool = False, most: int = 1000, fixed: str = ""
    ) -> Searched:
        with pytest.raises(PlacementError):
            self.node.place(demand)
        allowed = [(uid, "c0") for uid in self.pods if uid != f"uid-{fixed}"]
        space = SearchSpace(self.node, self._with, moves_memory)
        return fewest_moves(space, demand, self.pods, allowed, most)

    def _with(self, allocations: Mapping[str, PodAllocation]) -> Node:
        made = Node(self.policy)
        for allocation in allocations.values():
            made.adopt(allocation)
        return made


def moved(searched: Searched) -> Sequence[str]:
    """Each move as text: the container, the CPUs before and after."""
    assert searched.found is not None
    return [f"{m.pod} {m.before.cpu_set} -> {m.after.cpu_set}" for m in searched.found.moves]


def fragmented(**fields: object) -> Place:
    """8 CPUs on 2 NUMA nodes; CPU 0 is reserved, and each NUMA node has 2 free."""
    place = Place(machine(8, 1, 2), **fields)
    place.hold("small", "1")
    place.hold("large", "4-5")
    return place


def test_the_smallest_container_that_suffices_moves() -> None:
    searched = fragmented().search(pod("demand", "3"))
    assert moved(searched) == ["small 1 -> 6"]
    assert searched.complete
    assert searched.found is not None
    assert searched.found.placed.cpus == CpuSet.parse("1-3").mask


def test_what_may_not_move_stays() -> None:
    assert moved(fragmented().search(pod("demand", "3"), fixed="small")) == ["large 4-5 -> 2-3"]
    place = fragmented()
    del place.pods["uid-small"]  # such as a pod whose watch is behind
    del place.pods["uid-large"]
    assert place.search(pod("demand", "3")) == Searched()


NIC = "example.com/nic"


def with_nics(place: Place, **near: int) -> Place:
    """The place with a NIC on each NUMA node; these pods have the one on this NUMA node."""
    status = DevicesStatus(
        resources=tuple(DeviceCount(NIC, 1, MemSet((one,))) for one in (0, 1)),
        containers=tuple(
            ContainerDevices(f"uid-{name}", "c0", NIC, 1, MemSet((one,)))
            for name, one in near.items()
        ),
    )
    devices = NodeDevices(status, place.policy.hint_merger.everywhere)
    place.node.policy = place.policy = replace(place.policy, devices=devices)
    return place


def test_a_container_that_is_near_its_devices_stays_near_them() -> None:
    demand = pod("demand", "3")
    assert moved(with_nics(fragmented(), small=0).search(demand)) == ["large 4-5 -> 2-3"]
    assert with_nics(fragmented(), small=0, large=1).search(demand).found is None
    far = with_nics(fragmented(), small=1, large=1)
    assert moved(far.search(demand)) == ["small 1 -> 6"]


def test_room_is_made_near_the_devices_of_a_pod() -> None:
    asking = parse_pod(
        {
            "metadata": {"name": "demand", "uid": "uid-demand"},
            "spec": {"containers": [{"name": "c0", "resources": resources("3", **{NIC: "1"})}]},
        }
    )
    searched = with_nics(fragmented(), demand=1).search(asking)
    assert moved(searched) == ["large 4-5 -> 2-3"]
    assert searched.found is not None
    assert searched.found.placed.cpus & CpuSet.parse("0-3").mask == 0


@pytest.mark.parametrize("how", ["deleting", "terminal"])
def test_what_is_ending_is_not_moved(how: str) -> None:
    place = fragmented()
    small, ending = place.pods["uid-small"], how == "deleting"
    place.pods["uid-small"] = replace(small, deleting=ending, terminal=not ending)
    assert moved(place.search(pod("demand", "3"))) == ["large 4-5 -> 2-3"]


def test_more_than_all_that_is_free_fits_after_no_move() -> None:
    assert fragmented().search(pod("demand", "5")) == Searched()


def test_no_container_moves_to_where_another_leaves() -> None:
    place = Place(machine(8, 1, 2))
    place.hold("a", "1-2")
    place.hold("b", "4-6")
    assert place.search(pod("demand", "3")).found is None


def test_nothing_moves_where_nothing_has_to_be_aligned() -> None:
    place = Place(machine(8, 1, 2), topology={"policy": "None"})
    place.hold("a", "1-5")
    assert place.search(pod("demand", "3")) == Searched()


def test_the_shared_pool_keeps_a_cpu_while_containers_have_old_and_new_ones() -> None:
    strict = {"cpus": "0", "strict": True}
    place = Place(machine(9, 1, 3), reserved=strict)
    place.hold("a", "1")
    place.hold("b", "3-4")
    place.hold("c", "6-7")
    assert moved(place.search(pod("demand", "2"))) == ["a 1 -> 5"]
    place = Place(machine(4, 1, 2), reserved=strict)
    place.hold("a", "2")
    assert place.search(pod("demand", "2")).found is None


def test_bound_memory_keeps_a_container_unless_memory_may_move() -> None:
    place = fragmented(memory=MEMORY)
    assert place.search(pod("demand", "3")).found is None
    searched = place.search(pod("demand", "3"), moves_memory=True)
    assert moved(searched) == ["small 1 -> 6"]
    assert searched.found is not None
    (move,) = searched.found.moves
    assert move.after.mem_set == MemSet.parse("1")
    assert [block.node_ids for block in move.after.memory] == [(1,)]


def test_a_move_makes_room_for_memory() -> None:
    place = Place(machine(12, 1, 2, 16 * GIB), memory=MEMORY)
    place.hold("a", "1", memory="10Gi")
    place.hold("b", "6-7", memory="2Gi")
    demand = pod("demand", "1", memory="15Gi")
    assert moved(place.search(demand, moves_memory=True)) == ["a 1 -> 8"]


def test_memory_has_room_on_both_numa_nodes_while_it_moves() -> None:
    place = Place(machine(8, 1, 2, 16 * GIB), memory=MEMORY)
    place.hold("small", "1", memory="9Gi")
    place.hold("large", "4-5", memory="9Gi")
    assert place.search(pod("demand", "3"), moves_memory=True).found is None


def test_whole_cores_stay_whole() -> None:
    place = Place(machine(16, 2, 2), options={"fullPCPUsOnly": True})
    place.hold("a", "4-5")
    place.hold("b", "8-11")
    assert moved(place.search(pod("demand", "6"))) == ["a 4-5 -> 12-13"]


def test_isolated_cpus_are_replaced_by_isolated_ones() -> None:
    topology = replace(machine(12, 1, 2), isolated=CpuSet.parse("4-5,10"))
    place = Place(topology, isolatedCPUs="ExclusiveOnly")
    place.hold("a", "4")
    place.hold("b", "6-7")
    assert moved(place.search(pod("demand", "5"))) == ["a 4 -> 10"]


def test_the_containers_of_a_pod_that_is_aligned_as_a_whole_move_together() -> None:
    place = Place(machine(12, 1, 2), topology=ALIGNED | {"scope": "Pod"})
    view = pod("two", "1", "1")
    place.node.place(view)
    place.pods[view.uid] = view
    place.hold("b", "6-7")
    space = SearchSpace(place.node, place._with)
    both = [(view.uid, "c0"), (view.uid, "c1")]
    assert fewest_moves(space, pod("demand", "5"), place.pods, both[:1]).found is None
    searched = fewest_moves(space, pod("demand", "5"), place.pods, both)
    assert moved(searched) == ["two 1 -> 8", "two 2 -> 9"]


def test_a_search_that_reaches_its_limit_says_so() -> None:
    place = Place(machine(64, 1, 4))
    for cpu in CpuSet.parse("1-5,16-20,32-36,48-52"):
        place.hold(f"p{cpu}", str(cpu))
    unlimited, limited = (place.search(pod("demand", "14"), most=most) for most in (1000, 3))
    assert unlimited.complete
    assert len(moved(unlimited)) == 3
    assert not limited.complete
    assert limited.found is None
    assert place.search(pod("demand", "14")) == unlimited


ALLOWED = {"placement": {"podRequests": True}}


def test_what_wants_to_be_near_something_is_not_moved_off_it() -> None:
    for near in (Near("numa/0", ""), Near("", "numa/0"), Near("numa/0", "numa/1")):
        place = fragmented(**ALLOWED)
        place.pods["uid-small"] = replace(place.pods["uid-small"], near=near)
        assert moved(place.search(pod("demand", "3"))) == ["large 4-5 -> 2-3"]
    for near in (Near("numa/1", ""), Near("", "net/nosuch"), Near("", "?")):
        place = fragmented(**ALLOWED)
        place.pods["uid-small"] = replace(place.pods["uid-small"], near=near)
        assert moved(place.search(pod("demand", "3"))) == ["small 1 -> 6"]


def test_room_is_made_where_a_pod_must_be() -> None:
    demand = replace(pod("demand", "3"), near=Near("numa/1", ""))
    searched = fragmented(**ALLOWED).search(demand)
    assert moved(searched) == ["large 4-5 -> 2-3"]
    assert searched.found is not None
    assert searched.found.placed.cpus == CpuSet.parse("4-6").mask
    nowhere = replace(demand, near=Near("numa/7", ""))
    assert fragmented(**ALLOWED).search(nowhere) == Searched()
    wherever = replace(demand, near=Near("", "numa/1"))
    assert moved(fragmented(**ALLOWED).search(wherever)) == ["small 1 -> 6"]
