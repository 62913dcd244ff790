"""A policy that returns keeps the CPUs, and binds the memory, that the enforcer reads back."""

from typing import Any

import pytest

from numapin_operator.nodes.decide import decide
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import PodView
from support.values.operator import (
    POLICY,
    assignment_view,
    enforcer_status,
    picture,
    pod_view,
    policy_view,
)
from support.values.placement import GIB, machine, resources

MACHINE = machine(8, numa_nodes=2, memory_bytes=8 * GIB)
LOCAL = {"reserved": {"count": 1}, "memory": {"policy": "SingleNUMA"}}


def pod(name: str, *beside: dict[str, Any], init: bool = False) -> PodView:
    containers = [{"name": "main", "resources": resources("2", "6Gi")}, *beside]
    first = [{"name": "first", "resources": resources("100m", "1Gi")}] if init else []
    spec = {"initContainers": first, "containers": containers, "nodeName": "node-1"}
    return parse_pod({"metadata": {"name": name, "uid": name}, "spec": spec})


SHARES_CPUS = {"name": "beside", "resources": resources("100m", "1Gi")}


@pytest.mark.parametrize(
    ("kept", "mems", "memory", "bound"),
    [
        pytest.param(pod("a"), "1", "SingleNUMA", "1", id="one-numa-node"),
        pytest.param(pod("a"), "1", "Static", "1", id="static"),
        pytest.param(pod("a"), "1", "None", "", id="policy-binds-no-memory"),
        pytest.param(pod("a"), "0-1", "SingleNUMA", "", id="not-bound-any-more"),
        pytest.param(pod("a"), "7", "SingleNUMA", "", id="no-such-numa-node"),
        pytest.param(pod("a"), "", "SingleNUMA", "", id="nothing-is-told"),
        pytest.param(pod("a", SHARES_CPUS), "1", "SingleNUMA", "", id="shared-container-beside"),
        pytest.param(pod("a", init=True), "1", "SingleNUMA", "", id="init-container-runs"),
    ],
)
def test_memory_of_containers_that_are_kept(
    kept: PodView, mems: str, memory: str, bound: str
) -> None:
    found = {"podUID": "a", "container": "main", "cpus": "4-5", "mems": mems, "exclusive": True}
    status = enforcer_status(1, topology=MACHINE, running=["a"]) | {"containers": [found]}
    before = assignment_view({"mode": "None"}, status, generation=2)
    policy = policy_view("policy", LOCAL | {"memory": {"policy": memory}})
    made = decide(picture(before, kept, pod("b"), pod("c"), policies=(policy,))).spec
    assert made is not None
    first, *others = made.containers
    assert (str(first.cpus), str(first.mems)) == ("4-5", bound)
    assert [(block.numa_nodes, block.bytes) for block in first.memory] == (
        [((1,), 6 * GIB)] if bound else []
    )
    assert bool(first.outdated) == (memory != "None" and not bound)
    if memory != "None":
        placed = {one.pod for one in others}
        assert len(placed) == 1, "each NUMA node has room for one such pod, and one is taken"


READ_BACK = {"podUID": "uid-b", "container": "main", "cpus": "4-5", "exclusive": True}


@pytest.mark.parametrize(
    ("found", "cpus"),
    [
        pytest.param([READ_BACK], "4-5", id="still-there"),
        pytest.param([READ_BACK | {"exclusive": False}], "2-3", id="not-exclusive-any-more"),
        pytest.param([READ_BACK | {"cpus": "4-6"}], "2-3", id="not-what-it-asks-for"),
        pytest.param([READ_BACK | {"podUID": "uid-x"}], "2-3", id="an-unknown-pod"),
        pytest.param([READ_BACK | {"container": "x"}], "2-3", id="an-unknown-container"),
        pytest.param([READ_BACK, READ_BACK | {"container": "x"}], "2-3", id="twice"),
        pytest.param([READ_BACK | {"cpus": "64-65"}], "2-3", id="cpus-that-do-not-exist"),
        pytest.param([], "2-3", id="nothing"),
    ],
)
def test_a_policy_that_returns_keeps_what_the_status_reads_back(found: Any, cpus: str) -> None:
    status = enforcer_status(1, running=["uid-b"]) | {"containers": found}
    before = assignment_view({"mode": "None"}, status, generation=2)
    made = decide(picture(before, pod_view("b"), policies=(POLICY,))).spec
    assert made is not None
    assert [str(one.cpus) for one in made.containers] == [cpus]
