"""What the demo takes for proof."""

import pytest

from numapin_api.cpuset import CpuSet
from numapin_campaigns.demo import check, kernel_table
from numapin_lab.errors import LabError
from numapin_lab.node.container_cpus import ContainerCpus

OWNER = {("uid-a", "engine"): CpuSet.parse("2-3")}


def view(uid: str, container: str, **processes: str) -> ContainerCpus:
    allowed = {int(pid[1:]): CpuSet.parse(cpus) for pid, cpus in processes.items()}
    return ContainerCpus(uid, "default", f"pod-of-{uid}", container, CpuSet(), allowed)


def test_an_exclusive_container_alone_on_its_cpus_passes() -> None:
    check(OWNER, [view("uid-a", "engine", p7="2-3", p8="2-3"), view("uid-b", "noise", p9="0-1")])


@pytest.mark.parametrize(
    ("views", "complaint"),
    [
        pytest.param(
            [view("uid-a", "engine", p7="2-3", p8="0-3")],
            "pod-of-uid-a engine, process 8: on 0-3, not on 2-3",
            id="one-process-of-the-owner-is-elsewhere",
        ),
        pytest.param(
            [view("uid-a", "engine", p7="2")],
            "process 7: on 2, not on 2-3",
            id="the-owner-has-less-than-reported",
        ),
        pytest.param(
            [view("uid-a", "engine", p7="2-3"), view("uid-b", "noise", p9="0-2")],
            "pod-of-uid-b noise, process 9: on 0-2; 2-3 is taken",
            id="a-neighbour-may-run-there",
        ),
        pytest.param(
            [view("uid-a", "engine", p7="2-3"), view("uid-a", "(sandbox)", p6="0-3")],
            "pod-of-uid-a .sandbox., process 6: on 0-3; 2-3 is taken",
            id="its-own-sandbox-may-run-there",
        ),
        pytest.param([view("uid-a", "engine")], "does not run", id="the-owner-has-ended"),
        pytest.param([], "does not run", id="the-owner-is-gone"),
    ],
)
def test_anything_else_fails(views: list[ContainerCpus], complaint: str) -> None:
    with pytest.raises(LabError, match=complaint):
        check(OWNER, views)


def test_the_table_has_a_line_for_each_process() -> None:
    table = kernel_table([view("uid-a", "engine", p8="2-3", p7="2")])
    assert [line.split() for line in table.splitlines()] == [
        ["POD", "CONTAINER", "PID", "Cpus_allowed_list"],
        ["pod-of-uid-a", "engine", "7", "2"],
        ["pod-of-uid-a", "engine", "8", "2-3"],
    ]
