"""What a virtual node must have of its kernel, by its NodeAssignment."""

from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from numapin_api.nodeassignment import NodeAssignment
from numapin_campaigns.laws.virtual_node import problems
from numapin_lab.vm.running_lab import Group, KernelState, RunningVmLab, Task

SHARED = "0-3,5-7"
CPUS = {"owner": "4", "bound": ""}
"""Of `bound` only the memory is assigned: it runs on the shared pool."""


def assignment(reported: dict[str, str]) -> NodeAssignment:
    def entry(name: str, cpus: str) -> dict[str, Any]:
        exclusive = bool(CPUS[name])
        entry = {"podUID": name, "container": "main", "cpus": cpus, "mems": "1"}
        return entry | {"exclusive": exclusive}

    spec = [entry(name, cpus) | {"namespace": "d", "pod": name} for name, cpus in CPUS.items()]
    status = [entry(name, cpus) for name, cpus in reported.items()]
    pools = {"reserved": "0", "shared": SHARED}
    return NodeAssignment.model_validate(
        {
            "metadata": {"name": "numa"},
            "spec": {"pools": pools, "containers": spec},
            "status": {"pools": {**pools, "exclusive": "4"}, "containers": status},
        }
    )


def found(
    in_kernel: dict[str, str],
    reported: dict[str, str],
    asked: Mapping[str, str] = {},
    gone: Collection[str] = (),
) -> list[str]:
    """The problems with the containers on these CPUs; `asked` by default for the same.

    The pods that are `gone` were deleted.
    """
    groups = {
        f"pod{name}/{name}": Group(asked.get(name, cpus), cpus, "1", "1", (number,))
        for number, (name, cpus) in enumerate(in_kernel.items())
    }
    tasks = {number: Task(cpus, "1") for number, cpus in enumerate(in_kernel.values())}
    pods = [
        {
            "metadata": {"uid": name},
            "status": {"containerStatuses": [{"name": "main", "containerID": f"c://{name}"}]},
        }
        for name in CPUS
        if name not in gone
    ]
    lab = SimpleNamespace(
        assignment=lambda: assignment(reported),
        in_force=lambda: True,
        look=lambda: KernelState(groups, tasks),
        cluster=SimpleNamespace(pods=lambda: pods),
    )
    return problems(cast("RunningVmLab", lab))


RIGHT = {"owner": "4", "bound": SHARED}


def test_a_container_whose_memory_alone_is_bound_runs_on_the_shared_pool() -> None:
    assert found(RIGHT, RIGHT) == []


def test_a_cgroup_that_asks_for_nothing_may_have_the_shared_pool_of_its_pod() -> None:
    assert found(RIGHT, RIGHT, {"bound": ""}) == []
    assert found(RIGHT, RIGHT, {"owner": "4-5"}) != []


def test_a_container_whose_pod_was_just_deleted_is_a_problem() -> None:
    assert found({"bound": SHARED}, RIGHT, gone=["owner"]) == ["owner: main does not run"]


@pytest.mark.parametrize("wrong", [{"owner": SHARED}, {"bound": "0-7"}])
def test_a_container_on_other_cpus_is_a_problem(wrong: dict[str, str]) -> None:
    assert any(" is on " in one for one in found(RIGHT | wrong, RIGHT))


@pytest.mark.parametrize("wrong", [{"owner": "5"}, {"bound": "0-7"}])
def test_a_report_of_other_cpus_is_a_problem(wrong: dict[str, str]) -> None:
    (problem,) = found(RIGHT, RIGHT | wrong)
    assert problem.startswith("the status reports")
