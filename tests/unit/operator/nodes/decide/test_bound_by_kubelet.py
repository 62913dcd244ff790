"""Containers whose memory the kubelet has bound keep their NUMA nodes, with CPUs or without.

8 CPUs: 0-3 on NUMA node 0, 4-7 on NUMA node 1, of 8 GiB each; CPU 0 is reserved.
"""

from dataclasses import replace
from typing import Any

import pytest

from numapin_operator.nodes.decide import Write, decide
from numapin_operator.nodes.decide.returning import before_plan
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import PodView
from support.values.operator import (
    EMPTY,
    assignment_view,
    condition,
    enforcer_status,
    picture,
    policy_view,
)
from support.values.placement import GIB, machine, resources

STALLED = [condition("Stalled", reason="KubeletStaticPolicy")]
TWO = machine(8, numa_nodes=2, memory_bytes=8 * GIB)
SIDECAR = {"restartPolicy": "Always"}
Sizes = tuple[str, str]
"""A request of CPU and one of memory."""


def pod(
    *containers: Sizes, init: Sizes | None = None, ended: bool = False, name: str = "a", **more: Any
) -> PodView:
    """A pod with the containers c0, c1, .. and the init container i0."""
    spec: dict[str, Any] = {
        "nodeName": "node-1",
        "containers": [
            {"name": f"c{at}", "resources": resources(*sizes)}
            for at, sizes in enumerate(containers)
        ],
    }
    if init:
        first = {"name": "i0", "resources": resources(*init)}
        spec["initContainers"] = [first | more.pop("restart", {})]
    state = {"terminated": {"exitCode": 0}} if ended else {"running": {}}
    body = {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": spec | more.pop("spec", {}),
        "status": {"initContainerStatuses": [{"name": "i0", "state": state}]},
    }
    return parse_pod(body)


def reported(pinned: dict[str, Sizes]) -> list[dict[str, str]]:
    """What the enforcer reports, by the names of pod and container: CPUs and NUMA nodes."""
    return [
        {
            "podUID": f"uid-{name.split()[0]}",
            "container": name.split()[1],
            "cpus": cpus,
            "mems": mems,
        }
        for name, (cpus, mems) in pinned.items()
    ]


def view(pinned: dict[str, Sizes], spec: Any = EMPTY, generation: int = 1) -> Any:
    status = enforcer_status(generation, conditions=STALLED, topology=TWO)
    found = status | {"kubeletContainers": reported(pinned)}
    return assignment_view(spec, found, generation=generation)


POLICIES = (policy_view("p", {"reserved": {"count": 1}, "memory": {"policy": "Static"}}),)
HALF, WHOLE = ("500m", "4Gi"), ("2", "4Gi")
CASES: list[Any] = [
    pytest.param([pod(HALF)], {"a c0": ("", "1")}, {"a c0": ("", "1", 4)}, id="shares-cpus"),
    pytest.param(
        [pod(WHOLE, HALF)],
        {"a c0": ("4-5", "1"), "a c1": ("", "1")},
        {"a c0": ("4-5", "1", 4), "a c1": ("", "1", 4)},
        id="shares-cpus-beside-one-with-its-own",
    ),
    pytest.param(
        [pod(HALF, HALF)],
        {"a c0": ("", "1"), "a c1": ("", "0")},
        {"a c0": ("", "1", 4), "a c1": ("", "0", 4)},
        id="each-on-its-own-numa-node",
    ),
    pytest.param(
        [pod(("500m", "10Gi"))],
        {"a c0": ("", "0-1")},
        {"a c0": ("", "0-1", 10)},
        id="several-numa-nodes-together",
    ),
    pytest.param(
        [pod(WHOLE)], {"a c0": ("", "1")}, {"a c0": ("4-5", "1", 4)}, id="cpu-manager-none"
    ),
    pytest.param(
        [pod(WHOLE)],
        {"a c0": ("5-7", "1")},
        {"a c0": ("4-5", "1", 4)},
        id="other-number-of-cpus-than-requested",
    ),
    pytest.param(
        [pod(HALF, init=("1", "6Gi"))],
        {"a i0": ("4", "1"), "a c0": ("", "1")},
        {"a i0": ("4", "1", 2), "a c0": ("", "1", 4)},
        id="init-container-runs-and-leaves-its-memory",
    ),
    pytest.param(
        [pod(HALF, init=("500m", "6Gi"), ended=True)],
        {"a i0": ("", "0"), "a c0": ("", "1")},
        {"a c0": ("", "1", 4)},
        id="init-container-has-ended",
    ),
    pytest.param(
        [pod(HALF, init=("500m", "2Gi"), restart=SIDECAR)],
        {"a i0": ("", "1"), "a c0": ("", "1")},
        {"a i0": ("", "1", 2), "a c0": ("", "1", 4)},
        id="sidecar",
    ),
    pytest.param([], {"gone c0": ("", "1")}, {}, id="pod-has-gone"),
    pytest.param(
        [pod(HALF)],
        {"gone c0": ("4-5", "1"), "a c0": ("", "1")},
        {"a c0": ("", "1", 4)},
        id="beside-a-pod-that-has-gone",
    ),
    pytest.param(
        [pod(HALF)], {"a c0": ("", "7")}, {"a c0": ("", "0", 4)}, id="numa-node-that-is-not-there"
    ),
    pytest.param(
        [pod(HALF, HALF)],
        {"a c0": ("", "1")},
        {"a c0": ("", "0", 4), "a c1": ("", "0", 4)},
        id="a-container-of-which-the-state-says-nothing",
    ),
]


@pytest.mark.parametrize(("pods", "pinned", "kept"), CASES)
def test_what_is_kept(
    pods: list[PodView],
    pinned: dict[str, Sizes],
    kept: dict[str, tuple[str, str, int]],
) -> None:
    """CPUs, NUMA nodes and the bound GiB of each container, by the names of pod and container."""
    made = decide(picture(view(pinned), *pods, policies=POLICIES))
    assert made.spec is not None
    found = {
        f"{one.pod} {one.container}": (
            str(one.cpus),
            str(one.mems),
            sum(block.bytes for block in one.memory) // GIB,
        )
        for one in made.spec.containers
    }
    assert found == kept
    assert all(one.exclusive == bool(one.cpus) for one in made.spec.containers)
    again = view(pinned, made.spec.to_wire(), generation=2)
    assert decide(picture(again, *pods, policies=POLICIES)).write is Write.NOTHING
    after = assignment_view(
        made.spec.to_wire(), enforcer_status(2, conditions=STALLED, topology=TWO), generation=2
    )
    assert decide(picture(after, *pods, policies=POLICIES)).write is Write.NOTHING


def test_a_container_without_room_beside_its_memory_waits_for_cpus() -> None:
    """Also once the kubelet pins no more, and does not report what it has granted."""
    aligned = {"reserved": {"count": 1}, "memory": {"policy": "Static"}} | {
        "topology": {"policy": "SingleNUMANode"}
    }
    policies = (policy_view("p", aligned),)
    pods = [pod(("2", "2Gi"), name=name) for name in "abc"]
    before = view({f"{name} c0": ("", "1") for name in "abc"})
    made = decide(picture(before, *pods, policies=policies))
    assert made.spec is not None
    assert [(str(one.cpus), str(one.mems)) for one in made.spec.containers] == [
        ("4-5", "1"),
        ("6-7", "1"),
        ("", "1"),
    ]
    assert [one.pod for one in made.spec.refused_resizes or ()] == ["c"]
    reports = enforcer_status(2, conditions=STALLED, topology=TWO)
    after = assignment_view(made.spec.to_wire(), reports, generation=2)
    assert decide(picture(after, *pods, policies=policies)).write is Write.NOTHING
    freed = decide(picture(after, *pods[1:], policies=policies)).spec
    assert freed is not None
    assert [(one.pod, str(one.cpus)) for one in freed.containers] == [("b", "6-7"), ("c", "4-5")]


def test_more_memory_than_a_numa_node_has_is_not_taken_over() -> None:
    """A plan cannot keep it: each would take it over anew, and place the pod another time."""
    pods = [pod(("1", "6Gi"), ("1", "6Gi"))]
    pinned = {"a c0": ("0", "0"), "a c1": ("0", "0")}
    made = decide(picture(view(pinned), *pods, policies=POLICIES))
    assert made.spec is not None
    assert [str(one.mems) for one in made.spec.containers] == ["0", "1"]
    after = view(pinned, made.spec.to_wire(), 2)
    assert before_plan(after, pods, binds_memory=True) == after.spec


def test_without_a_memory_policy_nothing_is_bound() -> None:
    made = decide(picture(view({"a c0": ("", "1")}), pod(HALF)))
    assert made.spec is not None
    assert made.spec.containers == ()


def test_huge_pages_stay_on_the_numa_nodes_of_the_memory() -> None:
    asked = resources("500m", "1Gi", **{"hugepages-2Mi": "64Mi"})
    one = pod(HALF, spec={"containers": [{"name": "c0", "resources": asked}]})
    pages = tuple(replace(each, hugepages={"2Mi": 64}) for each in TWO.numa_nodes)
    status = enforcer_status(1, conditions=STALLED, topology=replace(TWO, numa_nodes=pages))
    found = status | {"kubeletContainers": reported({"a c0": ("", "1")})}
    made = decide(picture(assignment_view(EMPTY, found), one, policies=POLICIES))
    assert made.spec is not None
    (entry,) = made.spec.containers
    assert {(block.resource, block.numa_nodes) for block in entry.memory} == {
        ("memory", (1,)),
        ("hugepages-2Mi", (1,)),
    }
