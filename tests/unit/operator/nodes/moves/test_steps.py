from dataclasses import replace

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_operator.nodes.decide import Write
from numapin_operator.placement import Queued
from support.values.moves import MovingNode, container, fragmented_node
from support.values.placement import pod


def cpus(spec: NodeAssignmentSpec) -> dict[str, str]:
    return {one.pod: str(one.cpus) for one in spec.containers}


def test_a_move_from_its_beginning_to_its_end() -> None:
    node = fragmented_node()
    begun = node.decide()
    assert cpus(begun) == {"small": "1,6", "large": "4-5"}
    assert begun.refused == ()
    assert begun.pools is not None
    assert str(begun.pools.shared) == "0,2-3,7"
    small = node.moving("small")
    assert (str(small.leaving), small.at, small.pod) == ("1", None, "demand")
    assert node.entry("small").moved_at == "2030-01-01T00:00:00Z"
    node.wait(30)
    assert node.decide() == begun  # nothing is in force yet

    node.report()
    noticed = node.decide()
    assert cpus(noticed) == cpus(begun) == {"small": "1,6", "large": "4-5"}
    assert node.moving("small").at == "2030-01-01T00:00:31Z"
    assert node.decision.again_at == node.now + 1
    node.report()
    assert node.decide() == noticed  # the notice has not passed

    node.wait(1)
    dropped = node.decide()
    assert cpus(dropped) == {"small": "6", "large": "4-5"}
    assert dropped.pools is not None
    assert str(dropped.pools.shared) == "0,2-3,7"  # the CPU that left is nobody's yet
    assert node.decide() == dropped


def test_the_pod_gets_the_cpus_once_they_have_left_in_the_kernel() -> None:
    node = fragmented_node()
    for _ in range(3):
        node.decide()
        node.report()
        node.wait(5)
    placed = node.decide()
    assert cpus(placed) == {"small": "6", "large": "4-5", "demand": "1-3"}
    assert node.entry("small").moving is None
    assert node.decision.waiting == ()
    node.report()
    node.decide()
    assert node.decision.write is Write.NOTHING


def test_no_time_is_written_before_the_kernel_has_both() -> None:
    node = fragmented_node()
    node.decide()
    node.observed = node.generation
    node.reported["small"] = ("6", "")
    node.decide()
    assert node.decision.write is Write.NOTHING


def test_a_container_that_does_not_run_moves_once_its_spec_is_accepted() -> None:
    node = fragmented_node()
    node.decide()
    del node.reported["small"]
    node.decide()
    assert node.decision.write is Write.NOTHING
    node.observed = node.generation
    node.decide()
    assert node.moving("small").at is not None


def test_a_younger_pod_does_not_get_what_a_pod_waits_for() -> None:
    node = fragmented_node()
    node.decide()
    node.pods.append(replace(pod("younger", "2"), bound="2031-01-01T00:00:00Z"))
    spec = node.decide()
    assert "younger" not in cpus(spec)
    for _ in range(4):
        node.report()
        node.wait(5)
        spec = node.decide()
    assert cpus(spec)["demand"] == "1-3"


def test_a_pod_that_ends_while_it_is_moved_gives_back_all_its_cpus() -> None:
    node = fragmented_node()
    node.decide()
    node.pods = [one for one in node.pods if one.name != "small"]
    node.reported.pop("small")
    assert cpus(node.decide())["demand"] == "1-3"


def test_a_move_is_finished_although_the_pod_it_was_for_has_gone() -> None:
    node = fragmented_node()
    node.decide()
    node.pods = [one for one in node.pods if one.name != "demand"]
    for _ in range(3):
        node.report()
        node.wait(5)
        spec = node.decide()
    assert cpus(spec) == {"small": "6", "large": "4-5"}
    assert node.entry("small").moving is None


def test_a_move_goes_on_when_the_mode_becomes_static() -> None:
    node = fragmented_node()
    node.decide()
    node.policy["mode"] = "Static"
    for _ in range(3):
        node.report()
        node.wait(5)
        spec = node.decide()
    assert cpus(spec) == {"small": "6", "large": "4-5", "demand": "1-3"}
    assert spec.mode == "Static"


def test_static_moves_nothing_and_dynamic_tries_the_refused_pod_again() -> None:
    node = fragmented_node(mode="Static")
    node.spec["mode"] = "Static"
    spec = node.decide()
    assert cpus(spec) == {"small": "1", "large": "4-5"}
    assert [one.pod for one in spec.refused] == ["demand"]
    node.policy["mode"] = "Dynamic"
    assert cpus(node.decide())["small"] == "1"  # the enforcer has not accepted the refusal yet
    node.report()
    assert cpus(node.decide())["small"] == "1,6"


def test_only_pods_that_the_selector_chooses_are_moved() -> None:
    chosen = {"podSelector": {"matchLabels": {"app": "batch"}}}
    node = fragmented_node(dynamic=chosen)
    assert [one.pod for one in node.decide().refused] == ["demand"]
    node = fragmented_node(dynamic=chosen)
    node.pods[1] = replace(node.pods[1], labels={"app": "batch"})
    assert cpus(node.decide()) == {"small": "1", "large": "2-5"}


def test_a_container_that_was_moved_has_a_pause() -> None:
    node = fragmented_node(dynamic={"movePause": "10m"})
    node.spec["containers"][0]["movedAt"] = "2029-12-31T23:55:00Z"
    assert cpus(node.decide()) == {"small": "1", "large": "2-5"}  # another one moves
    node = fragmented_node(dynamic={"movePause": "10m"})
    for one in node.spec["containers"]:
        one["movedAt"] = "2029-12-31T23:55:00Z"
    spec = node.decide()
    assert cpus(spec) == {"small": "1", "large": "4-5"}
    assert spec.refused == ()  # it waits
    (waiting,) = node.decision.waiting
    assert isinstance(waiting, Queued)
    assert waiting.moving == (("default", "small"),)
    assert node.decision.again_at == node.now + 300
    node.now = node.decision.again_at or 0.0
    assert cpus(node.decide())["small"] == "1,6"


def test_no_more_containers_than_allowed_are_moved_within_a_minute() -> None:
    node = fragmented_node(dynamic={"maxMovesPerMinute": 1, "movePause": "0s"})
    node.spec["containers"][1]["movedAt"] = "2029-12-31T23:59:30Z"
    spec = node.decide()
    assert cpus(spec) == {"small": "1", "large": "4-5"}
    assert node.decision.again_at == node.now + 30
    node.now = node.decision.again_at or 0.0
    assert cpus(node.decide())["small"] == "1,6"


def test_a_refusal_is_not_written_again_for_its_numbers() -> None:
    node = fragmented_node(dynamic={"podSelector": {"matchLabels": {"app": "none"}}})
    refused = node.decide().refused
    node.pods.append(pod("other", "1"))
    spec = node.decide()
    assert spec.refused == refused
    assert "other" in cpus(spec)


def test_nothing_moves_while_the_enforcer_refuses_the_spec_or_the_kubelet_pins() -> None:
    node = fragmented_node()
    node.stalled = "KubeletStaticPolicy"
    assert cpus(node.decide()) == {"small": "1", "large": "4-5"}
    node.stalled = ""
    assert cpus(node.decide())["small"] == "1,6"


def test_a_wrong_clock_does_not_hold_a_move() -> None:
    node = fragmented_node()
    node.decide()
    node.report()
    node.decide()
    node.spec["containers"][0]["moving"]["at"] = "2040-01-01T00:00:00Z"
    node.decide()
    assert node.moving("small").at == "2030-01-01T00:00:01Z"


@pytest.mark.parametrize(
    ("offline", "expected"), [("6", "1"), ("1", "6"), ("2", "1,6")], ids=["new", "old", "other"]
)
def test_a_cpu_goes_offline_during_a_move(offline: str, expected: str) -> None:
    node = fragmented_node()
    node.decide()
    gone = CpuSet.parse(offline)
    left = tuple(cpu for cpu in node.topology.cpus if cpu.id not in gone)
    node.topology = replace(node.topology, cpus=left, offline=gone)
    spec = node.decide()
    assert cpus(spec)["small"] == expected
    assert (node.entry("small").moving is None) == (expected != "1,6")


MEMORY = {"policy": "Static", "reserved": [{"numaNode": 0, "memory": "1Gi"}]}


def bound(numa_node: int) -> dict[str, object]:
    block = {"numaNodes": [numa_node], "resource": "memory", "bytes": 64 << 20}
    return {"mems": str(numa_node), "memory": [block]}


def test_memory_is_bound_on_both_numa_nodes_until_it_has_moved() -> None:
    entries = [container("small", "1", **bound(0)), container("large", "4-5", **bound(1))]
    late = replace(pod("demand", "3"), bound="2030-01-01T00:00:00Z")
    policy = {"memory": MEMORY, "dynamic": {"moveMemory": True}}
    node = MovingNode(entries, [pod("small", "1"), pod("large", "2"), late], policy)
    node.decide()
    small = node.entry("small")
    assert (str(small.cpus), str(small.mems)) == ("1,6", "0-1")
    assert [one.numa_nodes for one in small.memory] == [(0,), (1,)]
    node.report()
    node.decide()
    node.wait(5)
    node.report()
    node.decide()
    small = node.entry("small")
    assert (str(small.cpus), str(small.mems)) == ("6", "1")
    assert len(small.memory) == 2
    node.observed = node.generation
    node.reported["small"] = ("6", "0-1")  # the CPUs have left, the memory has not yet
    node.decide()
    assert node.decision.write is Write.NOTHING
    node.report()
    node.decide()
    small = node.entry("small")
    assert small.mems == MemSet.parse("1")
    assert [one.numa_nodes for one in small.memory] == [(1,)]
    assert str(node.entry("demand").cpus) == "1-3"
    assert not any(one.outdated for one in NodeAssignmentSpec.from_wire(node.spec).containers)
