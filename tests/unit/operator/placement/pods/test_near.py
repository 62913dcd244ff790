"""Pods that say near what they must or would rather be: numapin.io/require-near, prefer-near."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.hardware.places import Near
from numapin_api.topology import DeviceName, NumaNode, PciDevice, Topology
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import (
    Node,
    PlacementError,
    PodView,
    plan_node,
    resolve,
    why_near,
)
from support.values.placement import GIB, NO_UIDS, granted_pod, machine, pod, pod_body, policy

LINE = ((10, 12, 20, 20), (12, 10, 20, 20), (20, 20, 10, 12), (20, 20, 12, 10))
"""Four NUMA nodes in two sockets."""

PCI = (
    PciDevice("0000:3b:00.0", "0200", 2),
    PciDevice("0000:5e:00.0", "0108", 3),
    PciDevice("0000:af:00.0", "0302", None),
)


def four(**fields: Any) -> Topology:
    """CPUs 0-15 on NUMA nodes 0 to 3, a NIC on 2, a disk on 3, a GPU that is nowhere."""
    made = machine(cpus=16, threads=2, numa_nodes=4)
    numa_nodes = tuple(replace(one, distances=LINE[one.id]) for one in made.numa_nodes)
    names = (
        DeviceName("net/ens1f0", (PCI[0].address,)),
        DeviceName("block/sda", (PCI[1].address,)),
    )
    return replace(made, numa_nodes=numa_nodes, pci=PCI, names=names, **fields)


ALLOWED = {"placement": {"podRequests": True}}


def near(name: str, *cpus: str, must: str = "", rather: str = "", **more: Any) -> PodView:
    return replace(pod(name, *cpus, **more), near=Near(must, rather))


def placed(node: Node, wanted: PodView) -> str:
    return str(CpuSet.from_mask(node.place(wanted).cpus))


@pytest.mark.parametrize(
    ("must", "cpus"),
    [
        ("numa/1", "4-5"),
        ("net/ens1f0", "8-9"),
        ("pci/0000:3b:00.0", "8-9"),
        ("pci/3B:00.0", "8-9"),
        ("block/sda", "12-13"),
        ("numa/3,numa/1", "4-5"),
        (" numa/3 , net/ens1f0", "8-9"),
    ],
)
@pytest.mark.parametrize("topology", ["None", "BestEffort", "Restricted", "SingleNUMANode"])
@pytest.mark.parametrize("kind", ["must", "rather"])
def test_the_cpus_are_on_the_numa_node_of_what_a_pod_names(
    topology: str, kind: str, must: str, cpus: str
) -> None:
    node = Node(resolve(four(), policy(topology={"policy": topology}, **ALLOWED)))
    assert placed(node, near("p", "2", **{kind: must})) == cpus


@pytest.mark.parametrize("memory", ["Static", "Preferred", "SingleNUMA"])
@pytest.mark.parametrize("topology", ["None", "BestEffort", "SingleNUMANode"])
def test_memory_is_where_the_cpus_are(memory: str, topology: str) -> None:
    spec = policy(topology={"policy": topology}, memory={"policy": memory}, **ALLOWED)
    node = Node(resolve(four(), spec))
    found = node.place(near("p", "2", must="net/ens1f0", memory="1Gi"))
    assert {block.numa_nodes for block in found.memory} == {1 << 2}


def test_memory_that_is_bound_together_with_another_numa_node_is_not_near() -> None:
    spec = policy(topology={"policy": "BestEffort"}, memory={"policy": "Static"}, **ALLOWED)
    node = Node(resolve(four(), spec))
    assert node.place(pod("wide", "5", memory="5Gi")).memory[0].numa_nodes == 0b11
    with pytest.raises(PlacementError, match=r"near numa/0 \(NUMA node 0\)"):
        node.place(near("p", "1", must="numa/0", memory="1Gi"))
    assert node.place(near("q", "1", rather="numa/0", memory="1Gi")).memory[0].numa_nodes == 0b11


def test_a_socket_is_all_its_numa_nodes() -> None:
    topology = four()
    cpus = tuple(replace(cpu, socket=cpu.numa_node // 2) for cpu in topology.cpus)
    spec = policy(topology={"policy": "BestEffort"}, **ALLOWED)
    node = Node(resolve(replace(topology, cpus=cpus), spec))
    assert placed(node, near("p", "6", must="socket/1")) == "8-13"
    with pytest.raises(PlacementError, match=r"near socket/1 \(NUMA nodes 2-3\), as annotation"):
        node.place(near("more", "4", must="socket/1"))


def test_a_pod_that_must_be_near_is_refused_with_the_numbers() -> None:
    node = Node(resolve(four(), policy(topology={"policy": "Restricted"}, **ALLOWED)))
    assert placed(node, near("first", "2", must="net/ens1f0")) == "8-9"
    with pytest.raises(PlacementError) as refused:
        node.place(near("second", "4", must="net/ens1f0"))
    assert str(refused.value) == (
        "near net/ens1f0 (NUMA node 2), as annotation numapin.io/require-near demands: no NUMA"
        " nodes have 4 CPUs free, all taken together; up to 2 CPUs would fit; free on NUMA nodes"
        " 1,3: 4 CPUs each, 0: 3 CPUs, 2: 2 CPUs"
    )
    assert refused.value.reason == "TopologyAffinityError"
    assert placed(node, pod("other", "4")) == "4-7"


@pytest.mark.parametrize(
    ("must", "reason", "said"),
    [
        ("net/eth9", "TopologyAffinityError", "there is no net/eth9; there are net/ens1f0"),
        ("numa/4", "TopologyAffinityError", "there is no numa/4; there are numa/0, numa/1, numa/2"),
        ("socket/7", "TopologyAffinityError", "there is no socket/7; there are socket/0, socket/1"),
        ("pci/af:00.0", "TopologyAffinityError", "the NUMA node of pci/0000:af:00.0 is unknown"),
        ("ens1f0", "InvalidPod", "'ens1f0' is not a place: write a list of places such as numa/1"),
        ("numa/1,", "InvalidPod", "'' is not a place"),
        ("numa/1 numa/2", "InvalidPod", "'numa/1 numa/2' is not a place"),
        ("disk/sda", "InvalidPod", "'disk/sda' is not a place"),
        ("net/\x1b[2J", "InvalidPod", r"'net/\x1b[2J' is not a place"),
        ("numa/1," * 99, "InvalidPod", "is longer than 512 characters"),
    ],
)
def test_what_cannot_be_found_refuses_who_needs_it_and_nobody_else(
    must: str, reason: str, said: str
) -> None:
    spec = policy(topology={"policy": "BestEffort"}, **ALLOWED)
    node = Node(resolve(four(), spec))
    with pytest.raises(PlacementError) as refused:
        node.place(near("p", "2", must=must))
    assert refused.value.reason == reason
    assert str(refused.value).startswith("annotation numapin.io/require-near: ")
    assert said in str(refused.value)
    (note,) = why_near(spec, four(), near("p", "2", must=must))
    assert said in note
    assert note.endswith("; it is refused")
    assert placed(node, near("q", "2", rather=must)) == "2-3"
    (note,) = why_near(spec, four(), near("q", "2", rather=must))
    assert said in note
    assert note.endswith("; the annotation has no effect")


def test_a_numa_node_without_cpus_is_no_place_to_be() -> None:
    numa_nodes = (*machine(numa_nodes=2).numa_nodes, NumaNode(2, 16 * GIB))
    topology = replace(machine(numa_nodes=2), numa_nodes=numa_nodes)
    node = Node(resolve(topology, policy(**ALLOWED)))
    with pytest.raises(PlacementError, match="NUMA node 2 of numa/2 has no CPUs"):
        node.place(near("p", "2", must="numa/2"))
    assert placed(node, near("p", "2", must="numa/2,numa/1")) == "4-5"


def test_a_numa_node_without_memory_gives_the_cpus() -> None:
    topology = four()
    numa_nodes = tuple(
        replace(one, memory_bytes=0 if one.id == 2 else one.memory_bytes)
        for one in topology.numa_nodes
    )
    spec = policy(memory={"policy": "Preferred"}, topology={"policy": "BestEffort"}, **ALLOWED)
    node = Node(resolve(replace(topology, numa_nodes=numa_nodes), spec))
    found = node.place(near("p", "2", must="net/ens1f0", memory="1Gi"))
    assert str(CpuSet.from_mask(found.cpus)) == "8-9"
    assert {block.numa_nodes for block in found.memory} == {1 << 3}


@pytest.mark.parametrize("topology", ["None", "BestEffort", "Restricted", "SingleNUMANode"])
def test_who_would_rather_be_near_is_next_to_it_if_there_is_no_room(topology: str) -> None:
    node = Node(resolve(four(), policy(topology={"policy": topology}, **ALLOWED)))
    found = [placed(node, near(f"p{n}", "4", rather="net/ens1f0")) for n in range(3)]
    assert found[:2] == ["8-11", "12-15"]
    assert found[2] == "4-7"


def test_a_preference_refuses_nobody_and_is_within_what_is_required() -> None:
    node = Node(resolve(four(), policy(topology={"policy": "BestEffort"}, **ALLOWED)))
    both = near("p", "4", must="numa/2,numa/3", rather="block/sda")
    assert placed(node, both) == "12-15"
    assert placed(node, near("q", "2", must="numa/2,numa/3", rather="block/sda")) == "8-9"
    apart = near("r", "2", must="numa/2", rather="numa/0")
    assert placed(node, apart) == "10-11"
    assert placed(node, near("s", "6", rather="net/ens1f0")) == "2-7"


def test_without_permission_nothing_changes_and_that_is_told() -> None:
    spec = policy(topology={"policy": "BestEffort"})
    node, wish = Node(resolve(four(), spec)), near("p", "2", must="garbage", rather="numa/3")
    assert placed(node, wish) == "2-3"
    assert why_near(spec, four(), wish) == (
        "its annotation numapin.io/require-near has no effect: placement.podRequests is false",
        "its annotation numapin.io/prefer-near has no effect: placement.podRequests is false",
    )
    assert why_near(spec, four(), pod("p", "2")) == ()


def test_what_it_means_is_told() -> None:
    wish = near("p", "2", must="socket/2,numa/3", rather="net/ens1f0")
    assert why_near(policy(**ALLOWED), four(), wish) == (
        "it must be near socket/2, numa/3 (NUMA nodes 2-3), by its annotation"
        " numapin.io/require-near",
        "it would rather be near net/ens1f0 (NUMA node 2), by its annotation"
        " numapin.io/prefer-near",
    )


def test_annotations_of_pods_are_read() -> None:
    body = pod_body("p")
    body["metadata"]["annotations"] = {
        "numapin.io/require-near": "numa/1",
        "numapin.io/prefer-near": "x" * 99_999,
    }
    assert parse_pod(body).near == Near("numa/1", "x" * 513)
    nothing: tuple[object, ...] = ("", 7, None, {})
    for text in nothing:
        body["metadata"]["annotations"] = {"numapin.io/require-near": text}
        assert parse_pod(body).near is None


def test_an_annotation_that_comes_later_moves_nothing() -> None:
    spec = policy(topology={"policy": "SingleNUMANode"}, **ALLOWED)
    pods = [pod("p", "2")]
    before = plan_node(four(), spec, None, pods, NO_UIDS).spec
    changed = [replace(one, near=Near("numa/3", "")) for one in pods]
    assert plan_node(four(), spec, before, changed, NO_UIDS).spec == before


def test_whole_cores_are_those_of_the_numa_node() -> None:
    spec = policy(options={"fullPCPUsOnly": True}, **ALLOWED)
    node = Node(resolve(four(), spec))
    assert placed(node, near("p", "2", must="numa/0")) == "2-3"
    with pytest.raises(PlacementError, match=r"near numa/0 \(NUMA node 0\)"):
        node.place(near("q", "2", must="numa/0"))


def test_the_last_cpus_of_a_numa_node_can_be_given_although_it_leaves_none_shared_there() -> None:
    spec = policy(reserved={"cpus": "0", "strict": True}, **ALLOWED)
    node = Node(resolve(four(), spec))
    assert placed(node, near("p", "4", must="numa/3")) == "12-15"
    assert str(node.shared) == "1-11"


def test_what_a_resize_adds_is_near_what_is_required() -> None:
    spec = policy(topology={"policy": "BestEffort"}, **ALLOWED)
    must = Near("net/ens1f0", "")
    before = replace(granted_pod("p", ("2", "64Mi")), near=must)
    first = plan_node(four(), spec, None, [before], NO_UIDS).spec
    for asked, cpus, refused in (("4", "8-11", ""), ("6", "8-9", "near net/ens1f0 (NUMA node 2)")):
        after = replace(granted_pod("p", (asked, "64Mi")), near=must)
        found = plan_node(four(), spec, first, [after], NO_UIDS).spec
        assert [str(one.cpus) for one in found.containers] == [cpus]
        messages = [one.message for one in found.refused_resizes or ()]
        assert [refused in one for one in messages] == ([True] if refused else [])


_PLACES = st.sampled_from(["", "numa/0", "numa/1", "numa/3", "net/ens1f0", "block/sda,numa/1", "?"])


@example([(5, "", ""), (1, "numa/0", "")], "BestEffort", "Static")
@given(
    st.lists(st.tuples(st.integers(1, 6), _PLACES, _PLACES), max_size=6),
    st.sampled_from(["None", "BestEffort", "Restricted", "SingleNUMANode"]),
    st.sampled_from(["None", "Static", "Preferred", "SingleNUMA"]),
)
def test_whoever_is_placed_is_near_and_whoever_is_not_leaves_no_trace(
    wishes: list[tuple[int, str, str]], topology: str, memory: str
) -> None:
    """A preference refuses nobody who would be placed without it; nothing of a trial is left."""
    spec = policy(topology={"policy": topology}, memory={"policy": memory}, **ALLOWED)
    node = Node(resolve(four(), spec))
    places = {"numa/0": 0b1, "numa/1": 0b10, "numa/3": 0b1000, "net/ens1f0": 0b100}
    for number, (count, must, rather) in enumerate(wishes):
        wish = near(f"p{number}", str(count), must=must, rather=rather, memory="5Gi")
        shared, free = node.shared, node.memory and node.memory.copy().free
        try:
            found = node.place(wish)
        except PlacementError:
            assert (node.shared, node.memory and node.memory.free) == (shared, free)
            with pytest.raises(PlacementError):
                node.place(near(f"again{number}", str(count), must=must, memory="5Gi"))
            continue
        if must in places:
            within = MemSet.from_mask(places[must])
            on = MemSet(cpu.numa_node for cpu in four().cpus if found.cpus >> cpu.id & 1)
            mems = MemSet.from_mask(0).union(MemSet.from_mask(b.numa_nodes) for b in found.memory)
            assert on <= within
            assert mems <= within
