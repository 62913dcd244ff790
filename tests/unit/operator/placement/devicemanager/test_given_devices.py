"""CPUs and memory near the devices that the kubelet has given to a pod.

Source of each expectation: Kubernetes v1.36, pkg/kubelet/cm/devicemanager, topology_hints.go.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain_assignment import ContainerDevices, DeviceCount, DevicesStatus
from numapin_operator.placement import (
    Node,
    NodeDevices,
    PlacementError,
    PodView,
    mark_outdated,
    plan_with,
    resolve,
)
from support.values.devices import GPU, NIC, container, pod_of
from support.values.placement import NO_UIDS, machine, policy

Rows = Mapping[str, str]
"""The NUMA nodes of each NIC of a container, such as `0 0 01 -`; `-` for none."""


def counted(near: str) -> dict[MemSet, int]:
    found: dict[MemSet, int] = {}
    for one in near.split():
        numa_nodes = MemSet(map(int, one.strip("-")))
        found[numa_nodes] = found.get(numa_nodes, 0) + 1
    return found


def reported(there: str, pods: Mapping[str, Rows]) -> DevicesStatus:
    """What a node reports of its NICs, and of those of each pod's containers."""
    return DevicesStatus(
        resources=tuple(DeviceCount(NIC, n, near) for near, n in counted(there).items()),
        containers=tuple(
            ContainerDevices(uid, name, NIC, n, near)
            for uid, rows in pods.items()
            for name, each in rows.items()
            for near, n in counted(each).items()
        ),
    )


def node_of(alignment: str, there: str, rows: Rows, scope: str = "Container", **more: Any) -> Node:
    """Two NUMA nodes of 8 CPUs each, CPU 0 reserved; pod `a` has these NICs."""
    spec = policy(topology={"policy": alignment, "scope": scope}, **more)
    resolved = resolve(machine(16, numa_nodes=2), spec)
    devices = NodeDevices(reported(there, {"a": rows}), resolved.hint_merger.everywhere)
    return Node(replace(resolved, devices=devices))


def near(node: Node, asked: PodView) -> dict[str, str]:
    """The NUMA nodes of the CPUs of each container."""
    numa_cpus = node.policy.topology.numa_cpus
    found = {}
    for one in node.place(asked).containers:
        cpus = CpuSet.from_mask(one.cpus)
        there = (str(each) for each, own in numa_cpus.items() if own & cpus)
        found[one.name] = "".join(there)
    return found


ONE = pod_of("a", container("c0", nic=1))
TWO = pod_of("a", container("c0", nic=1), container("c1", nic=1))


@pytest.mark.parametrize("alignment", ["BestEffort", "Restricted", "SingleNUMANode"])
@pytest.mark.parametrize("scope", ["Container", "Pod"])
@pytest.mark.parametrize(
    ("there", "row", "expected"),
    [
        pytest.param("0 1", "1", "1", id="near"),
        pytest.param("0 1", "0", "0", id="the-other"),
        pytest.param("0 01", "01", "0", id="near-both"),
        pytest.param("0 - 1", "-", "0", id="near-none-has-no-say"),
        pytest.param("0", "1", "1", id="unhealthy-meanwhile"),
        pytest.param("0 7", "7", "0", id="a-numa-node-that-does-not-exist"),
        pytest.param("0 1", "1 1", "0", id="not-as-many-as-requested"),
        pytest.param("0 1", "", "0", id="not-reported"),
    ],
)
def test_cpus_are_near_the_devices(
    alignment: str, scope: str, there: str, row: str, expected: str
) -> None:
    assert near(node_of(alignment, there, {"c0": row}, scope), ONE) == {"c0": expected}


def test_without_a_topology_policy_devices_decide_nothing() -> None:
    assert near(node_of("None", "0 1", {"c0": "1"}), ONE) == {"c0": "0"}


def test_each_container_is_near_its_own_devices() -> None:
    rows = {"c0": "1", "c1": "0"}
    assert near(node_of("SingleNUMANode", "0 1", rows), TWO) == {"c0": "1", "c1": "0"}


def test_in_pod_scope_all_devices_count_together() -> None:
    rows = {"c0": "1", "c1": "1"}
    assert near(node_of("Restricted", "0 1 1", rows, "Pod"), TWO) == {"c0": "1", "c1": "1"}
    with pytest.raises(PlacementError, match=r"^2 example.com/nic are on NUMA nodes 0-1, and"):
        node_of("Restricted", "0 1 1", rows | {"c1": "0"}, "Pod").place(TWO)


def test_pod_level_resources_are_near_all_devices_of_the_pod() -> None:
    whole = {"cpu": "4", "memory": "1Gi"}
    level = {"requests": whole, "limits": whole}
    asked = pod_of("a", container("c0", nic=1), container("c1", nic=1), resources=level)
    rows = {"c0": "1", "c1": "1"}
    assert near(node_of("SingleNUMANode", "0 1 1", rows, "Pod"), asked) == {"c0": "1", "c1": "1"}


def test_memory_follows_too() -> None:
    memory = {"policy": "Static", "reserved": [{"numaNode": 0, "memory": "1Gi"}]}
    placed = node_of("SingleNUMANode", "0 1", {"c0": "1"}, memory=memory).place(ONE)
    assert [block.node_ids for block in placed.memory] == [(1,)]


@pytest.mark.parametrize("scope", ["Container", "Pod"])
def test_what_init_containers_leave_counts_once(scope: str) -> None:
    """The kubelet lists no ordinary init container; its devices go to the next containers first."""
    asked = pod_of("a", container("i0", nic=1), container("c0", nic=1))
    for alignment in ("BestEffort", "SingleNUMANode"):
        node = node_of(alignment, "0 1 1", {"c0": "1"}, scope)
        assert near(node, asked) == {"i0": "1", "c0": "1"}
    also = {"i0": "1", "c0": "1"}
    assert near(node_of("Restricted", "0 1 1", also, scope), asked) == {"i0": "1", "c0": "1"}


def test_a_sidecar_has_devices_of_its_own() -> None:
    asked = pod_of("a", container("s0", restart="Always", nic=1), container("c0", nic=1))
    rows = {"s0": "0", "c0": "1"}
    assert near(node_of("SingleNUMANode", "0 1", rows), asked) == {"s0": "0", "c0": "1"}


def test_an_init_container_that_has_more_devices_needs_their_numa_nodes() -> None:
    """Two NICs are on two NUMA nodes; 10 CPUs are too, so Restricted allows both."""
    asked = pod_of("a", container("i0", "10", nic=2), container("c0", "10", nic=1))
    node = node_of("Restricted", "0 1", {"c0": "1"}, "Pod")
    assert near(node, asked) == {"i0": "01", "c0": "01"}


def test_restricted_demands_as_many_numa_nodes_as_an_empty_machine() -> None:
    wide = pod_of("a", container("c0", "10", nic=2))
    assert near(node_of("Restricted", "0 1", {"c0": "0 1"}), wide) == {"c0": "01"}
    with pytest.raises(PlacementError) as refused:
        node_of("Restricted", "0 1 1", {"c0": "0 1"}).place(wide)
    assert str(refused.value).startswith(
        "2 example.com/nic are on NUMA nodes 0-1, and topology policy Restricted allows 1 NUMA node"
    )
    assert near(node_of("BestEffort", "0 1 1", {"c0": "0 1"}), wide) == {"c0": "01"}


def test_a_refusal_names_the_devices_and_what_is_free_there() -> None:
    node = node_of("SingleNUMANode", "0 1", {"c0": "1"})
    node.place(pod_of("b", container("c0", "7")))
    node.place(pod_of("c", container("c0", "5")))
    with pytest.raises(PlacementError) as refused:
        node.place(pod_of("a", container("c0", "4", nic=1)))
    assert refused.value.reason == "TopologyAffinityError"
    assert str(refused.value) == (
        "no NUMA nodes have 4 CPUs free, all taken together; up to 3 CPUs would fit; "
        "free on NUMA node 1: 3 CPUs, 0: 0 CPUs"
    )
    node.release("b")
    with pytest.raises(PlacementError) as refused:
        node.place(pod_of("a", container("c0", "4", nic=1)))
    assert str(refused.value) == (
        "1 example.com/nic is on NUMA node 1, where 3 CPUs are free; topology policy "
        "SingleNUMANode demands 4 CPUs there; up to 3 CPUs would fit; "
        "free on NUMA node 0: 7 CPUs, 1: 3 CPUs"
    )


def test_two_resources_that_are_apart_are_named_both() -> None:
    spec = policy(topology={"policy": "SingleNUMANode"})
    resolved = resolve(machine(16, numa_nodes=2), spec)
    status = DevicesStatus(
        resources=(DeviceCount(NIC, 1, MemSet((0,))), DeviceCount(GPU, 1, MemSet((1,)))),
        containers=(
            ContainerDevices("a", "c0", NIC, 1, MemSet((0,))),
            ContainerDevices("a", "c0", GPU, 1, MemSet((1,))),
        ),
    )
    devices = NodeDevices(status, resolved.hint_merger.everywhere)
    with pytest.raises(PlacementError) as refused:
        Node(replace(resolved, devices=devices)).place(pod_of("a", container("c0", nic=1, gpu=1)))
    assert str(refused.value).startswith(
        "1 example.com/gpu is on NUMA node 1 and 1 example.com/nic is on NUMA node 0; topology "
        "policy SingleNUMANode demands CPUs and memory near all"
    )


def test_devices_of_pods_that_get_no_cpus_change_nothing() -> None:
    """The kubelet has given them: nobody is placed for devices alone."""
    node = node_of("SingleNUMANode", "0 1", {"c0": "1"})
    assert not node.wants(replace(ONE, selected=False))


def test_rows_of_other_pods_decide_nothing() -> None:
    node = node_of("SingleNUMANode", "0 1", {"c0": "1"})
    asked = pod_of("b", container("c0", nic=1))
    assert near(node, asked) == {"c0": "0"}


def test_late_rows_change_no_pod_that_is_placed() -> None:
    """Nor is it outdated: what its devices are was not known."""
    spec = policy(topology={"policy": "SingleNUMANode"})
    resolved = resolve(machine(16, numa_nodes=2), spec)
    before = plan_with(resolved, None, [ONE], NO_UIDS).spec
    everywhere = resolved.hint_merger.everywhere
    devices = NodeDevices(reported("0 1", {"a": {"c0": "1"}}), everywhere)
    known = replace(resolved, devices=devices)
    after = plan_with(known, before, [ONE], NO_UIDS).spec
    assert after == before
    assert mark_outdated(known, after, [ONE], edited=True) == (after, ())


def test_a_pod_waits_for_what_the_node_has_not_reported() -> None:
    spec = policy(topology={"policy": "SingleNUMANode"}, startGate="Wait")
    resolved = resolve(machine(16, numa_nodes=2), spec)
    other = pod_of("b", container("c0", "2"))
    everywhere, awaited = resolved.hint_merger.everywhere, frozenset("ab")
    for row, held in (("", ["a"]), ("1 1", ["a"]), ("1", [])):
        status = reported("0 1", {"a": {"c0": row}})
        devices = NodeDevices(status, everywhere, awaited)
        plan = plan_with(replace(resolved, devices=devices), None, [ONE, other], NO_UIDS)
        assert [one.pod.uid for one in plan.waiting] == held
        assert {one.pod_uid for one in plan.spec.containers} == {"a", "b"} - set(held)
        assert plan.spec.unassigned == ()
        assert plan.spec.refused == ()


def test_devices_near_many_groups_of_numa_nodes_have_no_say() -> None:
    """No machine has such ones, and a search among them takes long: a node that lies gains none."""
    pairs = [MemSet((0, other)) for other in range(1, 12)]
    resolved = resolve(machine(96, numa_nodes=12), policy(topology={"policy": "BestEffort"}))
    far = (ContainerDevices("a", "c0", NIC, 1, MemSet((10, 11))),)
    for there, expected in ((pairs[:7], "10"), (pairs, "0"), (pairs[:8], "0")):
        status = DevicesStatus(None, tuple(DeviceCount(NIC, 1, each) for each in there), far)
        devices = NodeDevices(status, resolved.hint_merger.everywhere)
        assert near(Node(replace(resolved, devices=devices)), ONE) == {"c0": expected}
