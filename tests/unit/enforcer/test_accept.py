from typing import Any

import pytest

from numapin_api.conditions import Reason
from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_enforcer.accept import accept

MACHINE = Topology(
    tuple(Cpu(cpu, cpu, 0, 0, cpu // 4) for cpu in range(7)),
    (NumaNode(0, 2**30), NumaNode(1, 2**30), NumaNode(2, 0)),
    offline=CpuSet([7]),
)


def container(name: str, cpus: str, *, exclusive: bool = True, mems: str = "") -> dict[str, Any]:
    return {
        "podUID": f"uid-{name}",
        "namespace": "d",
        "pod": name,
        "container": "c",
        "cpus": cpus,
        "mems": mems,
        "exclusive": exclusive,
    }


def spec(*containers: dict[str, Any], **fields: Any) -> NodeAssignmentSpec:
    pools = {"reserved": "0", "shared": "0-1"}
    return NodeAssignmentSpec.model_validate(
        {"pools": pools, "containers": list(containers), **fields}
    )


def problems(one: NodeAssignmentSpec) -> list[str]:
    return [str(problem) for problem in accept(one, MACHINE, "n", "n")]


@pytest.mark.parametrize(
    "good",
    [
        spec(),
        spec(container("a", "2-3"), container("b", "4", mems="1")),
        spec(container("a", "2"), container("b", "", exclusive=False, mems="0-1")),
        spec(container("a", "2"), container("b", "0-1", exclusive=False)),
        spec(container("a", "2"), pools={"reserved": "0", "shared": "1,3"}),
        spec(container("a", "2-3"), container("a", "3") | {"container": "after-init"}),
        NodeAssignmentSpec(mode="None"),
        NodeAssignmentSpec(),
    ],
)
def test_a_spec_that_holds_together_is_taken(good: NodeAssignmentSpec) -> None:
    assert problems(good) == []


_OVERLAP = "CPU 3 of d/b/c is owned by d/a/c as well"


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (spec(container("a", "9")), ["containers[0].cpus: this machine has no CPU 9"]),
        (spec(container("a", "7")), ["containers[0].cpus: CPU 7 is offline; online are 0-6"]),
        (spec(container("a", "2-3"), container("b", "3-4")), [f"containers[1].cpus: {_OVERLAP}"]),
        (spec(container("a", "1")), ["CPU 1 of d/a/c is in the shared pool as well"]),
        (
            spec(container("a", "2"), pools={"reserved": "2", "shared": "0"}),
            ["CPU 2 of d/a/c is in the reserved pool as well"],
        ),
        (spec(pools={"reserved": "0", "shared": "8"}), ["pools.shared: this machine has no CPU 8"]),
        (spec(container("a", "2", mems="2")), ["containers[0].mems: NUMA node 2 has no memory"]),
        (spec(container("a", "2", mems="5")), ["mems: this machine has no NUMA node 5"]),
        (spec(container("a", "")), ["containers[0].cpus: d/a/c is exclusive, but has no CPUs"]),
        (
            spec(container("a", "2"), container("a", "3")),
            ["containers[1]: d/a/c is already listed as spec.containers[0]"],
        ),
        (
            spec(container("a", "2-3"), container("b", "3", exclusive=False)),
            ["containers[1].cpus: CPU 3 of d/b/c is owned by d/a/c"],
        ),
        (spec(container("a", "2"), pools=None), ["pools: it is unset"]),
        (spec(mode="Dynamic"), ["mode: Dynamic is not built yet"]),
        (spec(isolation="Partition"), ["isolation: Partition is not built yet"]),
        (
            spec(container("a", "9"), container("b", "1")),
            ["has no CPU 9", "CPU 1 of d/b/c is in the shared pool"],
        ),
    ],
)  # fmt: skip
def test_each_thing_that_is_wrong_is_told(bad: NodeAssignmentSpec, told: list[str]) -> None:
    found = problems(bad)
    assert len(found) == len(told)
    for message, part in zip(found, told, strict=True):
        assert part in message


def test_another_nodes_assignment_is_refused() -> None:
    (problem,) = accept(spec(), MACHINE, "other", "this")
    assert problem.reason is Reason.INVALID_ASSIGNMENT
    assert str(problem) == "metadata.name: it is for the node other, and this node is this"


def test_a_later_field_has_its_own_reason() -> None:
    (problem,) = accept(spec(mode="Dynamic"), MACHINE, "n", "n")
    assert problem.reason is Reason.UNSUPPORTED_FIELD


def test_many_shared_cpus_are_told_once_each_owner() -> None:
    one = spec(container("a", "2-5"), container("b", "2-5"))
    assert problems(one) == [
        "spec.containers[1].cpus: CPU 2-5 of d/b/c is owned by d/a/c as well",
    ]
