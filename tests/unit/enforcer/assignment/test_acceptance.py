"""Which assignment is in force: accepted or refused as a whole; the last valid one stays."""

import logging
from pathlib import Path
from typing import Any

import pytest

from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_enforcer.assignment.acceptance import ACCEPTED, Acceptance
from numapin_enforcer.assignment.local_copy import LocalCopy

CPUS = tuple(Cpu(cpu, cpu, 0, NO_CACHE, 0) for cpu in range(4))
MACHINE = Topology(cpus=CPUS, numa_nodes=(NumaNode(0, 1 << 30),))
POOLS = {"reserved": "0", "shared": "0-2"}
GOOD = {"pools": POOLS}


def exclusive(cpus: str) -> dict[str, Any]:
    named = {"podUID": "u", "namespace": "d", "pod": "p", "container": "c"}
    return {**named, "cpus": cpus, "exclusive": True}


def body(spec: dict[str, Any], generation: int = 1, name: str = "n", uid: str = "u1") -> Any:
    return {"metadata": {"name": name, "uid": uid, "generation": generation}, "spec": spec}


@pytest.fixture
def acceptance() -> Acceptance:
    return Acceptance("n")


def test_a_valid_spec_is_accepted_once(
    acceptance: Acceptance, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for _ in range(2):
        acceptance.offer(body(GOOD), MACHINE)
    assert caplog.messages == [ACCEPTED]
    assert acceptance.accepted is not None
    assert (acceptance.accepted.generation, acceptance.generation, acceptance.enforces) == (
        1,
        1,
        True,
    )


def test_an_object_that_was_created_again_is_new(acceptance: Acceptance) -> None:
    acceptance.offer(body(GOOD), MACHINE)
    acceptance.offer(body(GOOD, uid="u2"), MACHINE)
    assert acceptance.accepted is not None
    assert acceptance.accepted.uid == "u2"


@pytest.mark.parametrize(
    ("spec", "name", "reason", "message"),
    [
        (GOOD | {"containers": [exclusive("9")]}, "n", "InvalidAssignment", "has no CPU 9"),
        (GOOD | {"containers": [exclusive("3-2")]}, "n", "InvalidAssignment", "runs backwards"),
        (GOOD | {"containers": [exclusive("2")]}, "n", "InvalidAssignment", "in the shared pool"),
        ({"pools": POOLS | {"shared": ""}}, "n", "InvalidAssignment", "shared"),
        (GOOD, "other", "InvalidAssignment", "it is for the node other, and this node is n"),
        ({"mode": "Sideways"}, "n", "InvalidAssignment", "spec.mode"),
    ],
    ids=["no such CPU", "bad list", "overlap", "empty pool", "foreign", "bad mode"],
)
def test_an_invalid_spec_leaves_the_last_valid_one_in_force(
    acceptance: Acceptance, spec: dict[str, Any], name: str, reason: str, message: str
) -> None:
    acceptance.offer(body(GOOD), MACHINE)
    acceptance.offer(body(spec, 2, name), MACHINE)
    assert acceptance.accepted is not None
    assert (acceptance.accepted.generation, acceptance.generation) == (1, 2)
    assert acceptance.refusal is not None
    assert acceptance.refusal.reason == reason
    assert message in acceptance.refusal.message
    acceptance.offer(body(GOOD, 3), MACHINE)
    assert acceptance.refusal is None


def test_a_spec_without_pools_is_waited_for(acceptance: Acceptance) -> None:
    acceptance.offer(body(GOOD), MACHINE)
    acceptance.offer(body({}, 2), MACHINE)
    assert acceptance.waiting is not None
    assert acceptance.waiting.reason == "WaitingForAssignment"
    assert acceptance.accepted is not None
    assert acceptance.accepted.generation == 1
    acceptance.offer(body({"mode": "None"}, 3), MACHINE)
    assert not acceptance.waiting
    assert not acceptance.enforces


def test_an_accepted_assignment_stays_so_when_a_cpu_goes_offline(
    acceptance: Acceptance, tmp_path: Path
) -> None:
    wanted = GOOD | {"containers": [exclusive("3")]}
    acceptance.offer(body(wanted), MACHINE)
    assert acceptance.accepted is not None
    copy = LocalCopy(tmp_path, "n")
    copy.write(acceptance.accepted)
    smaller = Topology(cpus=CPUS[:3], numa_nodes=MACHINE.numa_nodes)
    restarted = Acceptance("n")
    restarted.restore(copy)
    restarted.offer(body(wanted), smaller)
    assert (restarted.refusal, restarted.enforces) == (None, True)


def test_a_damaged_copy_is_a_refusal_until_the_api_server_answers(
    acceptance: Acceptance, tmp_path: Path
) -> None:
    copy = LocalCopy(tmp_path, "n")
    copy.path.write_text("{")
    acceptance.restore(copy)
    assert acceptance.accepted is None
    assert acceptance.refusal is not None
    assert acceptance.refusal.reason == "InvalidLocalCopy"
    assert acceptance.pop_copy_problem() == acceptance.refusal
    assert acceptance.pop_copy_problem() is None
    acceptance.offer(body(GOOD), MACHINE)
    assert acceptance.refusal is None
