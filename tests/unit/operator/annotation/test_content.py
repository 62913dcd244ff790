"""What the annotation of a pod says follows from the assignment alone."""

import json
from typing import Any

import pytest

from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_operator.annotation.content import annotations, with_notice
from support.values.moves import container
from support.values.placement import machine

TOPOLOGY = machine(8, 1, 2)
"""CPUs 0-3 on NUMA node 0, 4-7 on NUMA node 1."""

AT = "2030-01-01T00:00:31Z"


def spec(*containers: dict[str, Any]) -> NodeAssignmentSpec:
    pools = {"reserved": "0", "shared": "0"}
    return NodeAssignmentSpec.from_wire({"pools": pools, "containers": containers})


def said(*containers: dict[str, Any]) -> dict[str, Any]:
    """What each pod's annotation says, by UID."""
    return {uid: json.loads(text) for uid, text in annotations(spec(*containers), TOPOLOGY).items()}


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        pytest.param({"cpus": "2-4"}, {"cpus": "2-4", "numaNodes": "0-1"}, id="cpus"),
        pytest.param(
            {"cpus": "5", "mems": "1"}, {"cpus": "5", "numaNodes": "1", "mems": "1"}, id="memory"
        ),
        pytest.param(
            {"cpus": "1,6", "moving": {"leaving": "1"}},
            {"cpus": "1,6", "numaNodes": "0-1", "leaving": {"cpus": "1"}},
            id="leaving-at-a-time-not-known-yet",
        ),
        pytest.param(
            {
                "cpus": "1,6",
                "mems": "0-1",
                "moving": {"leaving": "1", "leavingMems": "0", "at": AT},
            },
            {
                "cpus": "1,6",
                "numaNodes": "0-1",
                "mems": "0-1",
                "leaving": {"cpus": "1", "mems": "0", "at": AT},
            },
            id="leaving",
        ),
        pytest.param(
            {"cpus": "6", "moving": {"leaving": "1", "at": AT}},
            {"cpus": "6", "numaNodes": "1"},
            id="has-left",
        ),
    ],
)
def test_what_a_container_is_told(entry: dict[str, Any], wanted: dict[str, Any]) -> None:
    found = said(container("a", **entry))
    assert found == {"uid-a": {"version": 1, "containers": {"c0": wanted}}}


def test_a_pod_has_one_annotation_for_all_its_containers() -> None:
    found = said(
        container("a", "1"), container("b", "2"), container("a", "3") | {"container": "c1"}
    )
    assert found["uid-a"]["containers"].keys() == {"c0", "c1"}
    assert found["uid-b"]["containers"].keys() == {"c0"}


def test_containers_without_cpus_from_numapin_are_told_nothing() -> None:
    shares = container("shares", "") | {"exclusive": False, "mems": "0"}
    assert said(shares, container("driver", "2", claimed=True)) == {}
    assert annotations(NodeAssignmentSpec(), None) == {}


def test_the_text_is_short_and_always_the_same() -> None:
    (text,) = annotations(spec(container("a", "2-3")), TOPOLOGY).values()
    assert text == '{"version":1,"containers":{"c0":{"cpus":"2-3","numaNodes":"0"}}}'


def test_which_pods_have_a_time_at_which_cpus_leave() -> None:
    found = spec(
        container("stays", "2"),
        container("begins", "1,3", moving={"leaving": "1"}),
        container("noticed", "4,5", moving={"leaving": "4", "at": AT}),
        container("dropped", "6", moving={"leaving": "7", "at": AT}),
    )
    assert with_notice(found) == {"uid-noticed"}
