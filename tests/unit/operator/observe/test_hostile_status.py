"""What an enforcer can write into its status stalls its own node, and says which field is wrong."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_operator.nodes.decide import decide
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.records import NodeView, PolicyView
from numapin_operator.policies.status import Phase
from support.values.operator import (
    EMPTY,
    Body,
    assignment_view,
    enforcer_status,
    node_view,
    picture,
    pod_view,
    policy_body,
    policy_view,
)

GOOD = enforcer_status(1)
FIRST = ("numaNodes", 0)


def changed(*path: str | int, value: Any) -> Body:
    """The good status with one field of its topology replaced."""
    status = copy.deepcopy(GOOD)
    part = status["topology"]
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    return status


def more_numa_nodes(**fields: Any) -> Body:
    """The good status with one NUMA node more."""
    node = {"id": 1, "cpus": "", "memoryBytes": 0} | fields
    return changed("numaNodes", value=[*GOOD["topology"]["numaNodes"], node])


def every_policy() -> list[Body]:
    alignment = {"policy": "BestEffort", "preferClosestNUMANodes": True}
    return [
        {},
        {"options": {"fullPCPUsOnly": True}},
        {"options": {"preferAlignCPUsByUncoreCache": True}},
        {"options": {"distributeCPUsAcrossNUMA": True}, "memory": {"policy": "Static"}},
        {"options": {"alignBySocket": True}, "topology": {"policy": "Restricted"}},
        {"topology": alignment, "memory": {"policy": "Preferred"}},
        {"topology": {"policy": "SingleNUMANode"}, "memory": {"policy": "SingleNUMA"}},
    ]


def outcome_of(status: Body, policy: Body) -> tuple[Phase, str, str]:
    governing = policy_view("policy", {"reserved": {"count": 2}} | policy)
    view = assignment_view(EMPTY, status)
    decision = decide(picture(view, pod_view("a"), policies=(governing,)))
    assert decision.outcome is not None
    return decision.outcome.phase, decision.outcome.reason, decision.outcome.message


@pytest.mark.parametrize(
    ("status", "field"),
    [
        pytest.param(changed(*FIRST, "id", value=70000), "numaNodes[0].id", id="numa-id"),
        pytest.param(changed(*FIRST, "id", value=10**13), "numaNodes[0].id", id="huge-numa-id"),
        pytest.param(changed(*FIRST, "id", value=-1), "numaNodes[0].id", id="negative-id"),
        pytest.param(changed(*FIRST, "cpus", value="0-9999"), "numaNodes[0].cpus", id="cpu"),
        pytest.param(changed(*FIRST, "cpus", value="0" * 5000), "numaNodes[0].cpus", id="list"),
        pytest.param(changed(*FIRST, "cpus", value=""), "numaNodes", id="no-cpus"),
        pytest.param(changed("numaNodes", value=[]), "numaNodes", id="no-numa-nodes"),
        pytest.param(
            changed(*FIRST, "distances", value=[10, 20]), "numaNodes[0].distances", id="distances"
        ),
        pytest.param(
            changed(*FIRST, "distances", value=[-1]), "numaNodes[0].distances", id="distance"
        ),
        pytest.param(
            changed(*FIRST, "hugepages", value={"2X": 1}), "numaNodes[0].hugepages", id="page-size"
        ),
        pytest.param(
            changed(*FIRST, "hugepages", value={"9" * 5000: 1}),
            "numaNodes[0].hugepages",
            id="page-size-digits",
        ),
        pytest.param(
            changed(*FIRST, "hugepages", value={"2048Ki": 1}), "numaNodes[0].hugepages", id="alias"
        ),
        pytest.param(
            changed(*FIRST, "hugepages", value={"1Ti": 1 << 40}),
            "numaNodes[0].hugepages",
            id="pages",
        ),
        pytest.param(
            changed(*FIRST, "memoryBytes", value=1 << 70), "numaNodes[0].memoryBytes", id="memory"
        ),
        pytest.param(more_numa_nodes(id=0), "numaNodes[1].id", id="numa-node-twice"),
        pytest.param(more_numa_nodes(cpus="3"), "numaNodes[1]", id="numa-nodes-overlap"),
        pytest.param(
            changed("sockets", value=[{"id": 0, "cpus": "0-8"}]), "sockets[0]", id="unknown-cpu"
        ),
        pytest.param(
            changed("sockets", value=[{"id": 0, "cpus": "0-3"}, {"id": 1, "cpus": "3-7"}]),
            "sockets[1]",
            id="sockets-overlap",
        ),
        pytest.param(
            changed("sockets", value=[{"id": n, "cpus": "0-65535"} for n in range(200)]),
            "sockets[0].cpus",
            id="200-wide-sockets",
        ),
        pytest.param(
            changed("uncoreCaches", value=[{"id": 1 << 31, "cpus": "0"}]),
            "uncoreCaches[0].id",
            id="cache-id",
        ),
        pytest.param(changed("cores", value=["0-1", "1-2"]), "cores[1]", id="cores-overlap"),
        pytest.param(changed("offline", value="0"), "offline", id="offline-and-online"),
        pytest.param(changed("warnings", value=["w"] * 33), "warnings", id="warnings"),
        pytest.param(changed("warnings", value=["w" * 513]), "warnings[0]", id="warning"),
        pytest.param(
            changed("pci", value=[{"devices": ["d" * 65]}]), "pci[0].devices[0]", id="device"
        ),
        pytest.param(changed("pci", value=[{"devices": ["d"] * 90000}]), "", id="bytes"),
        pytest.param(GOOD | {"topology": [1]}, "", id="no-object"),
    ],
)
def test_impossible_hardware_stalls_the_node(status: Body, field: str) -> None:
    for policy in every_policy():
        phase, reason, message = outcome_of(status, policy)
        assert (phase, reason) == (Phase.STALLED, "InvalidAssignment")
        assert message.startswith(f"status.topology.{field}".removesuffix("."))
        assert len(message) <= 1024


def test_a_machine_as_large_as_linux_takes_is_accepted() -> None:
    """8,192 CPUs in pairs of threads, 64 NUMA nodes with distances."""
    numa_nodes = [
        {
            "id": node,
            "cpus": f"{node * 64}-{node * 64 + 63},{4096 + node * 64}-{4096 + node * 64 + 63}",
            "memoryBytes": 1 << 40,
            "distances": [10 if other == node else 20 for other in range(64)],
        }
        for node in range(64)
    ]
    topology = {
        "numaNodes": numa_nodes,
        "sockets": [{"id": one["id"], "cpus": one["cpus"]} for one in numa_nodes],
        "cores": [f"{core},{core + 4096}" for core in range(4096)],
    }
    view = assignment_view(EMPTY, GOOD | {"topology": topology})
    assert view.problem is None
    assert view.topology is not None
    assert len(view.topology.cpus) == 8192


@pytest.mark.parametrize(
    ("part", "field"),
    [
        pytest.param({"running": ["not a uid"]}, "status.running[0]", id="running"),
        pytest.param({"running": ["u"] * 2049}, "status.running", id="many-running"),
        pytest.param({"conditions": 5}, "status.conditions", id="conditions"),
        pytest.param({"observedGeneration": "x"}, "status.observedGeneration", id="generation"),
    ],
)
def test_an_invalid_status_stalls_the_node(part: Body, field: str) -> None:
    phase, _, message = outcome_of(GOOD | part, {})
    assert phase is Phase.STALLED
    assert message.startswith(field)


def test_a_node_with_an_absurd_capacity_is_stalled_alone() -> None:
    body = {
        "metadata": {"name": "node-1", "uid": "uid-node-1", "labels": {"a": "b"}},
        "status": {"capacity": {"cpu": "many"}},
    }
    node = NodeView.decode(body)
    assert node.labels == {"a": "b"}
    decision = decide(picture(assignment_view(EMPTY, GOOD), node=node))
    assert decision.outcome is not None
    assert (decision.outcome.phase, decision.spec) == (Phase.STALLED, None)
    assert "'many' is not a quantity" in decision.outcome.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of each field in a document."""
    if not isinstance(value, dict | list):
        return [path]
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    return [path, *(found for key, one in steps for found in paths(one, (*path, key)))]


def any_field_replaced(document: Body, within: str) -> st.SearchStrategy[Body]:
    """The document with arbitrary JSON in place of one field."""

    def replace(path: tuple[Any, ...], value: Any) -> Body:
        made = copy.deepcopy(document)
        part: Any = made
        for step in path[:-1]:
            part = part[step]
        part[path[-1]] = value
        return made

    found = [path for path in paths(document) if path and path[0] == within]
    return st.builds(replace, st.sampled_from(found), JSON)


FULL_POLICY = {
    "nodeSelector": {"pool": "fast"},
    "priority": 5,
    "reserved": {"count": 2},
    "options": {"fullPCPUsOnly": True},
    "memory": {"policy": "Static", "reserved": [{"numaNode": 0, "memory": "1Gi"}]},
    "pods": {"podSelector": {"matchLabels": {"a": "b"}}},
}


@given(any_field_replaced(policy_body("policy", FULL_POLICY), "spec"))
@settings(max_examples=150)
def test_any_policy_is_decoded(body: Body) -> None:
    policy = PolicyView.decode(body)
    labels = node_view(labels={"pool": "fast"})
    decision = decide(picture(assignment_view(EMPTY, GOOD), policies=(policy,), node=labels))
    assert decision.outcome is not None
    assert -policy.spec.priority <= 2**64
    assert policy.spec.node_selector.items() is not None


ASSIGNMENT: Body = {
    "metadata": {"name": "node-1", "uid": "u", "resourceVersion": "1", "generation": 1},
    "spec": EMPTY
    | {
        "pools": {"reserved": "0", "shared": "0-7"},
        "containers": [
            {"podUID": "u", "namespace": "n", "pod": "p", "container": "c", "cpus": "2"}
        ],
        "refused": [{"podUID": "v", "namespace": "n", "pod": "p", "reason": "R", "message": "m"}],
    },
    "status": GOOD | {"running": ["u"]},
}


@pytest.mark.parametrize("within", ["spec", "status"])
def test_any_assignment_is_decoded(within: str) -> None:
    @given(any_field_replaced(ASSIGNMENT, within))
    @settings(max_examples=150)
    def check(body: Body) -> None:
        view = AssignmentView.decode(body)
        memory: Callable[[str], Body] = lambda name: {"memory": {"policy": name}}  # noqa: E731
        for policy in (policy_view("policy", memory("Static")), policy_view("policy")):
            assert decide(picture(view, pod_view("a"), policies=(policy,))).outcome is not None

    check()


@given(
    any_field_replaced(
        {
            "metadata": {"name": "n", "uid": "u"},
            "status": {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "7"}},
        },
        "status",
    )
)
@settings(max_examples=100)
def test_any_node_is_decoded(body: Body) -> None:
    node = NodeView.decode(body)
    decide(picture(assignment_view(EMPTY, GOOD), node=node, policies=(policy_view("policy"),)))
