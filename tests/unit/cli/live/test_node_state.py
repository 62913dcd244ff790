"""What `numapin get` and `explain` say of a container, by what the kernel has of it."""

from typing import Any

import pytest

from numapin_cli.live.node_state import NodeState
from support.values.operator import condition, enforcer_status

OWNER = {"podUID": "uid-a", "namespace": "default", "pod": "a", "container": "main"}
POOLS = {"reserved": "0-1", "shared": "0-7"}
BOUND = {"mems": "0"}
ALONE = {"cpus": "2-3", "exclusive": True}

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "memory alone, in the pool": (BOUND, {"cpus": "0-7", "mems": "0"}, "yes"),
    "memory alone, outside the pool": (BOUND, {"cpus": "0-8", "mems": "0"}, "has 0-8"),
    "memory alone, on a part of the pool": (BOUND, {"cpus": "4", "mems": "0"}, "has 4"),
    "memory alone, on other nodes": (BOUND, {"cpus": "0-7", "mems": "0-1"}, "memory on 0-1"),
    "nothing of its own": ({}, {"cpus": "0-7", "mems": "0-1"}, "yes"),
    "its own CPUs": (ALONE, {"cpus": "2-3", "exclusive": True}, "yes"),
    "its own CPUs, and another's too": (ALONE, {"cpus": "2-3"}, "not alone yet"),
    "its own CPUs, in the pool still": (ALONE, {"cpus": "0-7"}, "has 0-7"),
}


def state(entry: dict[str, Any], kernel: dict[str, Any] | None, shared: str = "0-7") -> NodeState:
    status = enforcer_status(1)
    found = [] if kernel is None else [{"podUID": "uid-a", "container": "main", **kernel}]
    return NodeState.decode(
        {
            "metadata": {"name": "node-1", "uid": "u", "resourceVersion": "2", "generation": 1},
            "spec": {"pools": POOLS | {"shared": shared}, "containers": [OWNER | entry]},
            "status": status | {"containers": found},
        }
    )


@pytest.mark.parametrize("case", CASES)
def test_a_container_is_compared_with_what_it_was_given(case: str) -> None:
    entry, kernel, expected = CASES[case]
    found = state(entry, kernel)
    (given,) = found.view.spec.containers if found.view else ()
    assert found.in_kernel(given) == expected
    (document,) = found.to_json()["containers"]
    assert document["inForce"] == (expected == "yes")


def test_a_container_that_inherited_an_affinity_is_alone_on_a_part_of_its_cpus() -> None:
    reported = enforcer_status(1, conditions=[condition("Stalled", reason="InheritedAffinity")])
    found = [{"podUID": "uid-a", "container": "main", "cpus": "2-3", "exclusive": False}]
    made = NodeState.decode(
        {
            "metadata": {"name": "node-1", "uid": "u", "resourceVersion": "2", "generation": 1},
            "spec": {"pools": POOLS, "containers": [OWNER | ALONE]},
            "status": reported | {"containers": found},
        }
    )
    (document,) = made.to_json()["containers"]
    assert document["inForce"] is False
    assert made.view is not None
    assert made.in_kernel(made.view.spec.containers[0]) == "may use a part"


def test_a_container_that_does_not_run_has_nothing() -> None:
    found = state(BOUND, None)
    (given,) = found.view.spec.containers if found.view else ()
    assert found.in_kernel(given) == "not running"


def test_offline_cpus_of_the_pool_are_not_missed() -> None:
    """The kernel takes offline CPUs out of every set, before the operator writes the pool again."""
    found = state(BOUND, {"cpus": "0-7", "mems": "0"}, shared="0-9")
    (given,) = found.view.spec.containers if found.view else ()
    assert found.in_kernel(given) == "yes"
