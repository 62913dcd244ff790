"""Devices as the kubelet's Device Manager gives them, and as hints beside CPUs and memory.

Source of each expectation: Kubernetes v1.36, pkg/kubelet/cm/devicemanager.
"""

import pytest

from numapin_api.cpuset import CpuSet
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import (
    KUBELET,
    Node,
    resolve,
)
from support.values.devices import (
    GPU,
    NIC,
    container,
    devices,
    free,
    given,
    node_of,
    pod_of,
    refusal,
)
from support.values.placement import GIB, machine, pod, policy


@pytest.mark.parametrize("alignment", ["BestEffort", "Restricted", "SingleNUMANode"])
@pytest.mark.parametrize("scope", ["Container", "Pod"])
@pytest.mark.parametrize(
    ("nics", "count", "expected"),
    [
        pytest.param(["1"], 1, "d0/1", id="cpus-follow"),
        pytest.param(["0", "1", "1"], 2, "d1,d2/1", id="as-many-as-asked"),
        pytest.param(["0!", "1"], 1, "d1/1", id="unhealthy"),
        pytest.param(["", ""], 1, "d0/0", id="no-topology"),
        pytest.param(["", "1"], 1, "d1/1", id="partly-without"),
        pytest.param(["01", "1"], 1, "d0/0", id="between-nodes"),
        pytest.param(["01", "1"], 2, "d0,d1/1", id="between-nodes-counts-for-both"),
        pytest.param(["1"], 0, "/1", id="a-request-of-0-has-hints"),
    ],
)
def test_cpus_and_devices_come_from_one_numa_node(
    alignment: str, scope: str, nics: list[str], count: int, expected: str
) -> None:
    node = node_of(alignment, *nics, scope=scope)
    assert given(node, pod_of("a", container("c0", nic=count))) == {"c0": expected}


def test_without_a_topology_policy_devices_decide_nothing() -> None:
    node = node_of("None", "1")
    assert given(node, pod_of("a", container("c0", nic=1))) == {"c0": "d0/0"}


def test_memory_follows_too() -> None:
    memory = {"policy": "Static", "reserved": [{"numaNode": 0, "memory": "1Gi"}]}
    node = node_of("SingleNUMANode", "1", memory=memory)
    placed = node.place(pod_of("a", container("c0", nic=1)))
    assert [block.node_ids for block in placed.memory] == [(1,)]
    other = node.place(pod_of("b", container("c0")))
    assert [block.node_ids for block in other.memory] == [(0,)]


def test_devices_are_given_once_until_their_pod_goes() -> None:
    node = node_of("SingleNUMANode", "0", "1")
    assert given(node, pod_of("a", container("c0", nic=1))) == {"c0": "d0/0"}
    assert given(node, pod_of("b", container("c0", nic=1))) == {"c0": "d1/1"}
    full = pod_of("c", container("c0", nic=1))
    reason, message = refusal(node, full)
    assert reason == "TopologyAffinityError"
    assert "too few devices are free near NUMA nodes for 1 of example.com/nic" in message
    node.release("a")
    assert given(node, full) == {"c0": "d0/0"}


def test_too_few_devices_are_refused_when_they_are_given() -> None:
    """Under BestEffort a resource that has no NUMA nodes to offer stops nothing before."""
    asked = pod_of("a", container("c0", nic=2))
    for alignment in ("None", "BestEffort"):
        said = "wanted 2 of example.com/nic, 1 free"
        assert refusal(node_of(alignment, "1"), asked) == ("NotEnoughDevices", said)
    said = "wanted 0 of example.com/nic, none free; none of them is healthy"
    none = pod_of("b", container("c0", nic=0))
    assert refusal(node_of("Restricted", "1!"), none) == ("NotEnoughDevices", said)


def test_under_restricted_as_many_numa_nodes_as_an_empty_machine_needs() -> None:
    """The unhealthy device counts as there: one NUMA node would do, so two are refused."""
    asked = pod_of("a", container("c0", nic=2))
    assert given(node_of("Restricted", "0", "1"), pod_of("a", container("c0", "10", nic=2))) == {
        "c0": "d0,d1/01"
    }
    reason, message = refusal(node_of("Restricted", "0", "1", "1!"), asked)
    assert reason == "TopologyAffinityError"
    assert "no NUMA node has 2 of example.com/nic free near" in message
    assert given(node_of("BestEffort", "0", "1", "1!"), asked) == {"c0": "d0,d1/0"}


def test_refusals_say_which_numbers_prevent_it() -> None:
    two = pod_of("a", container("c0", nic=2))
    _, message = refusal(node_of("SingleNUMANode", "0", "1"), two)
    assert message.startswith("2 of example.com/nic need 2 NUMA nodes, and topology policy Single")
    apart = pod_of("b", container("c0", "8", nic=1))
    _, message = refusal(node_of("SingleNUMANode", "0"), apart)
    assert message.startswith(
        "no NUMA nodes have 1 of example.com/nic and 8 CPUs together, as topology policy Single"
    )
    assert "up to 7 CPUs would fit" in message
    whole = pod_of("c", container("c0", nic=1), container("c1", nic=1))
    _, message = refusal(node_of("SingleNUMANode", "0", "1", scope="Pod"), whole)
    assert "for the pod as a whole (topology.scope Pod)" in message


def test_hints_name_only_numa_nodes_that_have_devices() -> None:
    """10 CPUs need both NUMA nodes, the NIC is near one: v1.34 still went through both."""
    node = node_of("BestEffort", "1")
    placed = node.place(pod_of("a", container("c0", "10", nic=1)))
    of_node_1 = node.policy.topology.numa_cpus[1]
    assert of_node_1 <= CpuSet.from_mask(placed.cpus)


def test_two_resources_are_two_providers() -> None:
    node = node_of("SingleNUMANode", "1")
    assert given(node, pod_of("a", container("c0", nic=1, gpu=1))) == {"c0": "d1,d0/1"}
    reason, _ = refusal(node, pod_of("b", container("c0", nic=1, gpu=1)))
    assert reason == "TopologyAffinityError"


def test_init_containers_leave_devices_and_sidecars_keep_them() -> None:
    node = node_of("SingleNUMANode", "0", "1", "1")
    first = pod_of("a", container("i0", nic=1), container("c0", nic=1))
    assert given(node, first) == {"i0": "d0/0", "c0": "d0/0"}
    kept = pod_of("b", container("s0", restart="Always", nic=1), container("c0", nic=1))
    assert given(node, kept) == {"s0": "d1/1", "c0": "d2/1"}


def test_containers_after_an_init_container_are_near_its_devices() -> None:
    """Each device that it leaves must be near the NUMA nodes of the next container."""
    node = node_of("Restricted", "1", "0", "0")
    asked = pod_of("a", container("i0", "500m", nic=1), container("c0", nic=1))
    node.place(pod_of("full", container("c0", nic=2)))
    assert given(node, asked) == {"i0": "d0/", "c0": "d0/1"}


def test_what_no_container_takes_stays_with_the_pod() -> None:
    node = node_of("BestEffort", "0", "0")
    node.place(pod_of("a", container("i0", nic=2), container("c0", nic=1)))
    assert free(node, NIC) == []
    node.release("a")
    assert free(node, NIC) == ["d0", "d1"]


def test_a_refused_pod_returns_its_devices() -> None:
    node = node_of("None", "0", "0")
    asked = pod_of("a", container("i0", nic=1), container("c0", nic=2), container("c1", "99"))
    reason, _ = refusal(node, asked)
    assert reason == "NotEnoughCPUs"


def test_devices_without_numa_nodes_are_given_last() -> None:
    """The GPU is on NUMA node 0, so the hint is: near it first, then elsewhere, then nowhere."""
    spec = policy(topology={"policy": "BestEffort"})
    there = {NIC: devices("", "1", "0"), GPU: devices("0")}
    for count, expected in ((1, "d2"), (2, "d2,d1")):
        node = Node(resolve(machine(16, numa_nodes=2), spec, KUBELET), there)
        asked = pod_of("a", container("c0", gpu=1, nic=count))
        assert given(node, asked) == {"c0": f"d0,{expected}/0"}


def test_what_an_init_container_leaves_is_no_hint_without_numa_nodes() -> None:
    """It left both devices: the next container must be near the one that has NUMA nodes."""
    node = node_of("BestEffort", "", "1")
    asked = pod_of("a", container("i0", "500m", nic=2), container("c0", nic=1))
    assert given(node, asked) == {"i0": "d1,d0/", "c0": "d1/1"}


def test_pod_scope_asks_for_the_peak() -> None:
    """Both containers at once, not the init container beside them."""
    node = node_of("SingleNUMANode", "0", "1", "1", scope="Pod")
    asked = pod_of("a", container("i0", nic=2), container("c0", nic=1), container("c1", nic=1))
    assert given(node, asked) == {"i0": "d1,d2/1", "c0": "d1/1", "c1": "d2/1"}


@pytest.mark.parametrize("qos", ["Burstable", "BestEffort"])
@pytest.mark.parametrize("alignment", ["BestEffort", "SingleNUMANode"])
def test_pods_of_any_class_get_devices(qos: str, alignment: str) -> None:
    """They get devices alone, and are refused for these."""
    one = {NIC: "1"}
    cpu = {"requests": {"cpu": "2"} | one, "limits": one}
    resources = cpu if qos == "Burstable" else {"requests": one, "limits": one}
    body = {"containers": [{"name": "c0", "resources": resources}]}
    asked, again = (
        parse_pod({"metadata": {"name": uid, "uid": uid}, "spec": body}) for uid in "ab"
    )
    assert asked.qos == qos
    memory = {"policy": "Static", "reserved": [{"numaNode": 0, "memory": "1Gi"}]}
    node = node_of(alignment, "1", memory=memory)
    assert node.wants(asked)
    assert given(node, asked) == {"c0": "d0/"}
    reason, message = refusal(node, again)
    assert reason == ("NotEnoughDevices" if alignment == "BestEffort" else "TopologyAffinityError")
    assert "CPUs would fit" not in message


def test_a_pod_with_devices_alone_binds_no_memory() -> None:
    """Memory could not be bound on both NUMA nodes, which the devices are near."""
    memory = {"policy": "Static", "reserved": [{"numaNode": 0, "memory": "1Gi"}]}
    node = node_of("BestEffort", "0", "1", memory=memory)
    assert node.place(pod("one", "1")).memory[0].node_ids == (0,)
    spec = {"containers": [{"name": "c0", "resources": {"limits": {NIC: "2"}}}]}
    asked = parse_pod({"metadata": {"name": "a", "uid": "a"}, "spec": spec})
    assert given(node, asked) == {"c0": "d0,d1/"}


def test_pod_level_resources_leave_devices_to_the_start_of_containers() -> None:
    """The kubelet's `AllocatePod` gives none: a container that finds too few does not start."""
    node = node_of("BestEffort", "1", scope="Pod")
    whole = {"cpu": "4", "memory": "1Gi"}
    level = {"requests": whole, "limits": whole}
    asked = pod_of("a", container("c0", nic=1), container("c1", nic=1), resources=level)
    assert asked.pod_level is not None
    assert given(node, asked) == {"c0": "d0/0", "c1": "/0"}


def test_other_extended_resources_are_none_of_devices() -> None:
    node = node_of("SingleNUMANode", "1")
    asked = pod_of("a", container("c0", dongle=3))
    assert asked.containers[0].devices == (("example.com/dongle", 3),)
    assert given(node, asked) == {"c0": "/0"}


def test_a_node_without_devices_does_not_look_at_requests_for_them() -> None:
    node = Node(resolve(machine(16, numa_nodes=2), policy(), KUBELET))
    asked = pod_of("a", container("c0", nic=3))
    assert given(node, asked) == {"c0": "/0"}
    best_effort = parse_pod(
        {
            "metadata": {"name": "b", "uid": "b"},
            "spec": {"containers": [{"name": "c", "resources": {"limits": {NIC: "1"}}}]},
        }
    )
    assert not node.wants(best_effort)


def test_a_preferred_memory_policy_does_not_move_cpus_from_devices() -> None:
    """The memory would be on NUMA node 0; without devices the CPUs go there."""
    for nics, expected in ((["1"], "d0/1"), ([""], "d0/0")):
        node = node_of("BestEffort", *nics, memory={"policy": "Preferred"})
        node.place(pod("low", "1", memory=str(15 * GIB)))
        node.place(pod("high", "1", memory=str(15 * GIB)))
        node.release("uid-low")
        asked = container("c0", "2", nic=1)
        asked["resources"]["requests"]["memory"] = str(8 * GIB)
        assert given(node, pod_of("a", asked)) == {"c0": expected}
