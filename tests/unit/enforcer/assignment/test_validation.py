from typing import Any

import pytest

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_enforcer.assignment.decode import decode_spec
from numapin_enforcer.assignment.validation import MOST_PROBLEMS, find_problems

MACHINE = Topology(
    tuple(Cpu(cpu, cpu, 0, 0, cpu // 4) for cpu in range(7)),
    (NumaNode(0, 2**30), NumaNode(1, 2**30), NumaNode(2, 0), NumaNode(3, 0)),
    offline=CpuSet([7]),
    withheld=CpuSet([10]),
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
    return decode_spec({"pools": pools, "containers": list(containers), **fields})


def problems(one: NodeAssignmentSpec) -> list[str]:
    return [str(problem) for problem in find_problems(one, MACHINE, "n", "n")]


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
def test_a_valid_spec_has_no_problems(good: NodeAssignmentSpec) -> None:
    assert problems(good) == []


_ONLINE = "; online are 0-6"
_MEMORY = "; memory is on 0-1"


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (
            spec(container("a", "2,9")),
            [f"spec.containers[0].cpus: this machine has no CPU 9{_ONLINE}"],
        ),
        (spec(container("a", "3,7")), [f"spec.containers[0].cpus: CPU 7 is offline{_ONLINE}"]),
        (
            spec(container("a", "3,10")),
            [f"spec.containers[0].cpus: pods may not use CPU 10 of this machine{_ONLINE}"],
        ),
        (
            spec(container("a", "2-3"), container("b", "3-4")),
            ["spec.containers[1].cpus: CPU 3 of d/b/c is exclusive to d/a/c as well"],
        ),
        (
            spec(container("a", "1-2")),
            ["spec.containers[0].cpus: CPU 1 of d/a/c is in the shared pool as well"],
        ),
        (
            spec(container("a", "2-3"), pools={"reserved": "0,2", "shared": "0"}),
            ["spec.containers[0].cpus: CPU 2 of d/a/c is in the reserved pool as well"],
        ),
        (
            spec(pools={"reserved": "0", "shared": "0,8"}),
            [f"spec.pools.shared: this machine has no CPU 8{_ONLINE}"],
        ),
        (
            spec(pools={"reserved": "0,7", "shared": "1"}),
            [f"spec.pools.reserved: CPU 7 is offline{_ONLINE}"],
        ),
        (
            spec(container("a", "2", mems="1-2")),
            [f"spec.containers[0].mems: NUMA node 2 has no memory{_MEMORY}"],
        ),
        (
            spec(container("a", "2", mems="0,5")),
            [f"spec.containers[0].mems: this machine has no NUMA node 5{_MEMORY}"],
        ),
        (
            spec(container("a", "")),
            ["spec.containers[0].cpus: d/a/c is exclusive, but has no CPUs"],
        ),
        (
            spec(container("a", "2"), container("a", "3")),
            ["spec.containers[1]: d/a/c is already listed at index 0"],
        ),
        (
            spec(container("a", "2-3"), container("b", "3-4", exclusive=False)),
            ["spec.containers[1].cpus: CPU 3 of d/b/c is exclusive to d/a/c"],
        ),
        (
            spec(container("a", "2"), pools=None),
            ["spec.pools: it is unset, but containers without exclusive CPUs need a shared pool"],
        ),
        (spec(container("a", "2"), mode="Dynamic"), []),
        (spec(isolation="Partition"), []),
        (
            spec(container("a", "9"), container("b", "1")),
            [
                f"spec.containers[0].cpus: this machine has no CPU 9{_ONLINE}",
                "spec.containers[1].cpus: CPU 1 of d/b/c is in the shared pool as well",
            ],
        ),
        (
            spec(container("a", "2"), container("b", "3"), container("e", "2-3", exclusive=False)),
            [
                "spec.containers[2].cpus: CPU 2 of d/e/c is exclusive to d/a/c",
                "spec.containers[2].cpus: CPU 3 of d/e/c is exclusive to d/b/c",
            ],
        ),
    ],
)
def test_every_problem_is_found(bad: NodeAssignmentSpec, expected: list[str]) -> None:
    assert problems(bad) == expected


def test_a_released_assignment_need_not_fit() -> None:
    assert problems(spec(container("a", "9"), mode="None")) == []


def test_the_assignment_of_another_node_is_refused() -> None:
    (problem,) = find_problems(spec(), MACHINE, "other", "this")
    assert problem.reason is Reason.INVALID_ASSIGNMENT
    assert str(problem) == "metadata.name: it is for the node other, and this node is this"


def test_an_overlap_of_many_cpus_is_one_problem() -> None:
    one = spec(container("a", "2-5"), container("b", "2-5"))
    assert problems(one) == [
        "spec.containers[1].cpus: CPU 2-5 of d/b/c is exclusive to d/a/c as well",
    ]


@pytest.mark.parametrize("exclusive", [True, False])
def test_a_spec_of_nothing_but_overlaps_makes_few_problems(exclusive: bool) -> None:
    rest = [container(f"p{n}", "2-3", exclusive=exclusive) for n in range(2047)]
    found = problems(spec(container("a", "2-3"), *rest))
    assert len(found) == MOST_PROBLEMS + 1
    assert found[-1] == "spec: there are more problems"


def test_a_cpu_of_three_pods_is_two_problems() -> None:
    one = spec(container("a", "2-3"), container("b", "3-4"), container("e", "3-4"))
    assert problems(one) == [
        "spec.containers[1].cpus: CPU 3 of d/b/c is exclusive to d/a/c as well",
        "spec.containers[2].cpus: CPU 3 of d/e/c is exclusive to d/a/c as well",
        "spec.containers[2].cpus: CPU 4 of d/e/c is exclusive to d/b/c as well",
    ]


def test_as_many_problems_as_are_named_are_all() -> None:
    found = problems(spec(*(container(f"p{n}", "") for n in range(MOST_PROBLEMS))))
    assert found[-1].startswith(f"spec.containers[{MOST_PROBLEMS - 1}]")
