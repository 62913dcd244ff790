"""A resize of a pod that has resources as a whole."""

import pytest

from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import PodView, plan_node
from support.values.placement import NO_UIDS, history, machine, policy, resources

PLAIN = machine(16, threads=1, numa_nodes=2)


def given(spec: NodeAssignmentSpec, name: str = "a") -> list[str]:
    return [str(one.cpus) for one in spec.containers if one.pod == name]


def reasons(spec: NodeAssignmentSpec) -> list[tuple[str, str | None, str]]:
    return [(one.pod, one.container, one.reason) for one in spec.refused_resizes or ()]


def whole_pod(total: str, exclusive: str, memory: str = "1Gi") -> PodView:
    """A pod with resources as a whole, a container with CPUs of its own, and one without."""
    whole = resources(total, memory)
    own = resources(exclusive)
    containers = [{"name": "own", "resources": own}, {"name": "rest"}]
    return parse_pod(
        {
            "metadata": {"name": "a", "uid": "uid-a", "generation": 2},
            "spec": {"resources": whole, "containers": containers},
            "status": {
                "allocatedResources": whole["requests"],
                "containerStatuses": [
                    {"name": "own", "allocatedResources": own["requests"]},
                    {"name": "rest", "allocatedResources": {"cpu": "0"}},
                ],
            },
        }
    )


@pytest.mark.parametrize(
    ("before", "after", "cpus"),
    [
        pytest.param(("4", "2"), ("6", "2"), ["1-2", "3-6"], id="the-rest-grows"),
        pytest.param(("4", "2"), ("6", "4"), ["1-2,5-6", "3-4"], id="the-own-grow"),
        pytest.param(("6", "2"), ("4", "2"), ["1-2", "3-4"], id="the-rest-shrinks"),
        pytest.param(("6", "4"), ("3", "1"), ["1", "5-6"], id="both-shrink"),
        pytest.param(("4", "2"), ("4", "3"), ["1-2,4", "3"], id="from-the-rest-to-own"),
        pytest.param(("4", "2"), ("3500m", "2"), ["", ""], id="the-pod-leaves-exclusivity"),
    ],
)
def test_resources_of_a_pod_as_a_whole(
    before: tuple[str, str], after: tuple[str, str], cpus: list[str]
) -> None:
    together = policy(topology={"policy": "BestEffort", "scope": "Pod"})
    spec = history(PLAIN, together, [whole_pod(*before)], [whole_pod(*after)])
    assert given(spec) == cpus
    assert reasons(spec) == []
    again = plan_node(PLAIN, together, spec, [whole_pod(*after)], NO_UIDS).spec
    assert again.to_wire() == spec.to_wire()


def test_the_rest_of_a_pod_keeps_a_cpu() -> None:
    together = policy(topology={"policy": "BestEffort", "scope": "Pod"})
    spec = history(PLAIN, together, [whole_pod("4", "2")], [whole_pod("4", "4")])
    assert given(spec)[1] == "3"
    assert [one[2] for one in reasons(spec)] == ["EmptyPodSharedPoolError"]


def test_memory_of_a_pod_as_a_whole() -> None:
    together = policy(
        topology={"policy": "BestEffort", "scope": "Pod"}, memory={"policy": "Static"}
    )
    spec = history(PLAIN, together, [whole_pod("4", "2")], [whole_pod("4", "2", memory="20Gi")])
    assert [str(one.mems) for one in spec.containers] == ["0-1", "0-1"]
    assert sum(block.bytes for one in spec.containers for block in one.memory) >> 30 == 20
