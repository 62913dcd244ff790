"""Which assignment is in force: taken whole or refused whole, the last good one stays."""

from pathlib import Path
from typing import Any

import pytest

from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_enforcer.assignment.acceptance import Acceptance
from numapin_enforcer.assignment.local_copy import LocalCopy

CPUS = tuple(Cpu(cpu, cpu, 0, NO_CACHE, 0) for cpu in range(4))
MACHINE = Topology(cpus=CPUS, numa_nodes=(NumaNode(0, 1 << 30),))
POOLS = {"reserved": "0", "shared": "0-2"}
GOOD = {"pools": POOLS}


def owner(cpus: str) -> dict[str, Any]:
    named = {"podUID": "u", "namespace": "d", "pod": "p", "container": "c"}
    return {**named, "cpus": cpus, "exclusive": True}


def body(spec: dict[str, Any], generation: int = 1, name: str = "n", uid: str = "u1") -> Any:
    return {"metadata": {"name": name, "uid": uid, "generation": generation}, "spec": spec}


@pytest.fixture
def intake() -> Acceptance:
    return Acceptance("n")


def test_a_sound_spec_is_accepted_once(intake: Acceptance) -> None:
    assert intake.offer(body(GOOD), MACHINE)
    assert not intake.offer(body(GOOD), MACHINE)
    assert intake.accepted is not None
    assert (intake.accepted.generation, intake.generation, intake.enforces) == (1, 1, True)


def test_an_object_made_anew_counts_as_new(intake: Acceptance) -> None:
    intake.offer(body(GOOD), MACHINE)
    assert intake.offer(body(GOOD, uid="u2"), MACHINE)


@pytest.mark.parametrize(
    ("spec", "name", "reason", "message"),
    [
        (GOOD | {"containers": [owner("9")]}, "n", "InvalidAssignment", "has no CPU 9"),
        (GOOD | {"containers": [owner("3-2")]}, "n", "InvalidAssignment", "runs backwards"),
        (GOOD | {"containers": [owner("2")]}, "n", "InvalidAssignment", "in the shared pool"),
        ({"pools": POOLS | {"shared": ""}}, "n", "InvalidAssignment", "shared"),
        (GOOD, "other", "InvalidAssignment", "it is for the node other, and this node is n"),
        (GOOD | {"isolation": "Partition"}, "n", "UnsupportedField", "is not built yet"),
        ({"mode": "Sideways"}, "n", "InvalidAssignment", "spec.mode"),
    ],
    ids=["no such CPU", "bad list", "overlap", "empty pool", "foreign", "unbuilt", "bad mode"],
)
def test_a_bad_spec_leaves_the_last_good_one(
    intake: Acceptance, spec: dict[str, Any], name: str, reason: str, message: str
) -> None:
    intake.offer(body(GOOD), MACHINE)
    assert intake.offer(body(spec, 2, name), MACHINE)
    assert intake.accepted is not None
    assert (intake.accepted.generation, intake.generation) == (1, 2)
    assert intake.refusal is not None
    assert intake.refusal.reason == reason
    assert message in intake.refusal.message
    intake.offer(body(GOOD, 3), MACHINE)
    assert intake.refusal is None


def test_without_pools_nothing_is_said_yet(intake: Acceptance) -> None:
    intake.offer(body(GOOD), MACHINE)
    intake.offer(body({}, 2), MACHINE)
    assert intake.waiting is not None
    assert intake.waiting.reason == "WaitingForAssignment"
    assert intake.accepted is not None
    assert intake.accepted.generation == 1
    intake.offer(body({"mode": "None"}, 3), MACHINE)
    assert not intake.waiting
    assert not intake.enforces


def test_what_was_accepted_before_stays_so_when_a_cpu_went_offline(
    intake: Acceptance, tmp_path: Path
) -> None:
    wanted = GOOD | {"containers": [owner("3")]}
    intake.offer(body(wanted), MACHINE)
    assert intake.accepted is not None
    copy = LocalCopy(tmp_path, "n")
    copy.write(intake.accepted)
    smaller = Topology(cpus=CPUS[:3], numa_nodes=MACHINE.numa_nodes)
    restarted = Acceptance("n")
    restarted.restore(copy)
    restarted.offer(body(wanted), smaller)
    assert (restarted.refusal, restarted.enforces) == (None, True)


def test_a_bad_copy_is_a_refusal_until_the_api_server_speaks(
    intake: Acceptance, tmp_path: Path
) -> None:
    copy = LocalCopy(tmp_path, "n")
    copy.path.write_text("{")
    intake.restore(copy)
    assert intake.accepted is None
    assert intake.refusal is not None
    assert intake.refusal.reason == "InvalidLocalCopy"
    assert intake.pop_copy_problem() == intake.refusal
    assert intake.pop_copy_problem() is None
    intake.offer(body(GOOD), MACHINE)
    assert intake.refusal is None
