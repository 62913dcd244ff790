"""The hardware of a node changes under its pods: they are compared with the policy again."""

from dataclasses import replace

from numapin_api.hardware.layout import layout_digest
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_operator.nodes.decide import Decision, Write, decide
from numapin_operator.placement import PodView
from support.values.operator import assignment_view, enforcer_status, picture, policy_view
from support.values.placement import GIB, machine, pod

POLICY = policy_view(
    "policy", {"reserved": {"cpus": "0"}, "topology": {"policy": "SingleNUMANode"}}
)
ONE, TWO = machine(16, 1), machine(16, 1, 2)


def decided(topology: Topology, spec: NodeAssignmentSpec | None, *pods: PodView) -> Decision:
    wire = spec.to_wire() if spec else {"mode": "Static"}
    since = (spec.policy and spec.policy.since if spec else None) or 1
    status = enforcer_status(since, topology=topology, running=[one.uid for one in pods])
    before = assignment_view(wire, status, generation=since)
    return decide(picture(before, *pods, policies=(POLICY,)))


def written(topology: Topology, spec: NodeAssignmentSpec | None, *pods: PodView) -> Decision:
    decision = decided(topology, spec, *pods)
    assert decision.write is Write.REPLACE
    assert decision.spec is not None
    return decision


def test_a_container_that_is_not_aligned_any_more_is_outdated() -> None:
    pods = (pod("a", "2"), pod("b", "6"))
    before = written(ONE, None, *pods).spec
    after = written(TWO, before, *pods)
    assert after.spec is not None
    assert [(one.pod, str(one.cpus), one.outdated) for one in after.spec.containers] == [
        ("a", "1-2", None),
        ("b", "3-8", True),
    ]
    again = decided(TWO, after.spec, *pods)
    assert again.write is Write.NOTHING
    assert again.outcome is not None
    assert (again.outcome.reason, again.outcome.outdated) == ("WaitingForContainers", 1)
    back = written(ONE, after.spec, *pods).spec
    assert back is not None
    assert not any(one.outdated for one in back.containers)


def test_a_pod_that_was_refused_for_its_numa_nodes_is_tried_again() -> None:
    before = written(TWO, None, pod("wide", "9")).spec
    assert before is not None
    assert [one.pod for one in before.refused] == ["wide"]
    after = written(ONE, before, pod("wide", "9")).spec
    assert after is not None
    assert [one.pod for one in after.containers] == ["wide"]


def test_an_assignment_without_the_digest_is_not_rewritten_for_it() -> None:
    pods = (pod("a", "2"), pod("no", "17"))
    spec = written(ONE, None, *pods).spec
    assert spec is not None
    assert spec.policy is not None
    assert spec.policy.hardware == layout_digest(ONE)
    older = replace(spec, policy=replace(spec.policy, hardware=None))
    assert decided(ONE, older, *pods).write is Write.NOTHING


def test_instances_of_a_gpu_that_come_and_go_change_no_layout() -> None:
    instance = replace(TWO.numa_nodes[1], id=2, on_device=True)
    with_instance = replace(TWO, numa_nodes=(*TWO.numa_nodes, instance))
    assert layout_digest(with_instance) == layout_digest(TWO)
    ordinary = replace(TWO, numa_nodes=(*TWO.numa_nodes, replace(instance, on_device=False)))
    assert layout_digest(ordinary) != layout_digest(TWO)


def test_memory_that_is_taken_from_a_numa_node_is_promised_no_longer() -> None:
    memory = {"reserved": {"cpus": "0"}, "memory": {"policy": "SingleNUMA"}}
    policies = (policy_view("policy", memory),)
    names = {"first": "2", "second": "2", "shares": "500m"}
    pods = [pod(name, cpus, memory="6Gi") for name, cpus in names.items()]

    def decision(size_gib: int, spec: NodeAssignmentSpec | None) -> Decision:
        since = (spec.policy and spec.policy.since if spec else None) or 1
        topology, running = machine(8, 1, 1, size_gib * GIB), [one.uid for one in pods]
        status = enforcer_status(since, topology=topology, running=running)
        wire = spec.to_wire() if spec else {"mode": "Static"}
        view = assignment_view(wire, status, generation=since)
        return decide(picture(view, *pods, policies=policies))

    before = decision(20, None).spec
    assert before is not None
    assert [str(one.mems) for one in before.containers] == ["0", "0", "0"]
    after = decision(10, before)
    assert after.spec is not None
    assert [(one.pod, str(one.mems)) for one in after.spec.containers] == [
        ("first", "0"),
        ("second", ""),
    ]
    assert [(one.pod, str(one.reason)) for one in after.spec.refused] == [
        ("shares", "NotEnoughMemory")
    ]
    assert after.outcome is not None
    assert "default/second/c0 has no memory bound" in after.outcome.message
