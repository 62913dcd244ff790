"""Specs with lines are accepted or refused as those with entries, and named as written."""

import json
from pathlib import Path
from typing import Any

import pytest

from numapin_api.forms.report import Generation
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_enforcer.assignment.acceptance import MESSAGE_LIMIT, Acceptance
from numapin_enforcer.assignment.decode import MOST_FAULTS
from numapin_enforcer.assignment.local_copy import LocalCopy

CPUS = tuple(Cpu(cpu, cpu, 0, NO_CACHE, 0) for cpu in range(4))
MACHINE = Topology(cpus=CPUS, numa_nodes=(NumaNode(0, 1 << 30),))
POOLS = {"reservedCPUs": "0", "sharedCPUs": "0-1"}
FIRST, SECOND = "d/a c cpus=2 since=1 uid=u-a", "d/b c cpus=3 since=2 uid=u-b"


def body(*lines: Any, generation: int = 1, uid: str = "u1", **more: Any) -> dict[str, Any]:
    metadata = {"name": "n", "uid": uid, "generation": generation}
    spec = {"pools": POOLS, "assigned": list(lines)} | more.pop("spec", {})
    return {"metadata": metadata, "spec": spec, **more}


@pytest.fixture
def acceptance() -> Acceptance:
    return Acceptance("n")


def refusal_of(acceptance: Acceptance) -> str:
    assert acceptance.refusal is not None
    return acceptance.refusal.message


def test_lines_say_what_entries_say(acceptance: Acceptance) -> None:
    acceptance.offer(body(FIRST), MACHINE)
    entry = {"podUID": "u-a", "namespace": "d", "pod": "a", "container": "c"}
    entries = [entry | {"cpus": "2", "exclusive": True}]
    other, pools = Acceptance("n"), {"reserved": "0", "shared": "0-1"}
    metadata = {"name": "n", "uid": "u1", "generation": 1}
    other.offer({"metadata": metadata, "spec": {"pools": pools, "containers": entries}}, MACHINE)
    assert acceptance.accepted is not None
    assert acceptance.accepted == other.accepted
    assert acceptance.assigned.keys() == other.assigned.keys() == {("u-a", "c")}


def test_the_local_copy_has_entries_which_an_older_enforcer_reads(
    acceptance: Acceptance, tmp_path: Path
) -> None:
    acceptance.offer(body(FIRST), MACHINE)
    assert acceptance.accepted is not None
    copy = LocalCopy(tmp_path, "n")
    copy.write(acceptance.accepted)
    saved = json.loads(copy.path.read_text())["spec"]
    assert saved["pools"] == {"reserved": "0", "shared": "0-1"}
    assert [(one["podUID"], one["cpus"]) for one in saved["containers"]] == [("u-a", "2")]
    assert copy.read() == acceptance.accepted


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("d/b c cpus=2 uid=u-b", "spec.assigned[1]: CPU 2 of d/b/c is exclusive to d/a/c as well"),
        ("d/b c cpus=9 uid=u-b", "spec.assigned[1]: this machine has no CPU 9"),
        ("d/b c mems=5 uid=u-b", "spec.assigned[1]: this machine has no NUMA node 5"),
        ("d/b c cpus=1 uid=u-b", "spec.assigned[1]: CPU 1 of d/b/c is in the shared pool as well"),
        (FIRST, "spec.assigned[1]: d/a/c is already listed at index 0"),
        ("d/b c cpus=3-2 uid=u-b", "spec.assigned[1]: cpus "),
        ("d/b c cpus=3 uid=../x", "spec.assigned[1]: podUID should match"),
        ("d/b c memory=0:1Gi memory=1x uid=u-b", "spec.assigned[1]: memory should be like 0:1Gi"),
        ("d/b c cpus=3", "spec.assigned[1]: has no uid"),
        ("", "spec.assigned[1]: should be like `namespace/pod container"),
        ({"podUID": "u-b"}, "spec.assigned[1]: should be a text"),
        (None, "spec.assigned[1]: should be a text"),
        ("x" * 20_000, "spec.assigned[1]: has 20000 characters"),
    ],
)
def test_a_wrong_line_leaves_the_last_valid_spec_in_force(
    acceptance: Acceptance, line: Any, message: str
) -> None:
    acceptance.offer(body(FIRST), MACHINE)
    acceptance.offer(body(FIRST, line, generation=2), MACHINE)
    assert refusal_of(acceptance).startswith(message)
    assert (acceptance.enforced.generation, acceptance.judged.observed.generation) == (1, 2)
    acceptance.offer(body(FIRST, SECOND, generation=3), MACHINE)
    assert (acceptance.refusal, acceptance.enforced) == (None, Generation("u1", 3))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"assigned": "x"}, "spec.assigned: should be a list"),
        ({"assigned": {"a": 1}}, "spec.assigned: should be a list"),
        ({"assigned": [f"d/p{n} c uid=u-{n}" for n in range(2049)]}, "spec.assigned: should have"),
        ({"pools": {"sharedCPUs": "0"}}, "spec.pools.reservedCPUs: is missing; add it"),
        ({"pools": POOLS | {"sharedCPUs": "7"}}, "spec.pools.sharedCPUs: this machine has no CPU"),
        ({"pools": POOLS | {"sharedCPUs": 7}}, "spec.pools.sharedCPUs: should be a text"),
        ({"releaseTime": 7}, "spec.releaseTime: should be a text"),
    ],
)
def test_fields_have_the_names_of_the_object(
    acceptance: Acceptance, spec: dict[str, Any], message: str
) -> None:
    acceptance.offer(body(FIRST, spec=spec), MACHINE)
    assert refusal_of(acceptance).startswith(message)


def test_of_many_damaged_lines_the_first_are_named(acceptance: Acceptance) -> None:
    acceptance.offer(body(*["\x00" * 100] * 2000), MACHINE)
    message = refusal_of(acceptance)
    assert message.endswith("spec: there are more faults")
    assert message.count("spec.assigned[") == MOST_FAULTS
    assert len(message) <= MESSAGE_LIMIT


def test_unknown_keys_of_lines_are_named_once(acceptance: Acceptance) -> None:
    later = [f"{line} weight=2" for line in (FIRST, SECOND)]
    acceptance.offer(body(*later, spec={"pools": POOLS | {"idle": "1"}, "future": 1}), MACHINE)
    assert acceptance.refusal is None
    assert set(acceptance.unknown) == {"spec.assigned[].weight", "spec.pools.idle", "spec.future"}


def test_of_a_refused_spec_older_lines_have_been_accepted(acceptance: Acceptance) -> None:
    acceptance.offer(body(FIRST), MACHINE)
    acceptance.offer(body(FIRST, "d/b c cpus=9 since=2 uid=u-b", generation=2), MACHINE)
    assert acceptance.refusal is not None
    assert acceptance.assigned.keys() == {("u-a", "c")}


@pytest.mark.parametrize("line", ["", "d/b c cpus=3-2 since=2 uid=u-b"], ids=["no line", "faults"])
def test_of_a_spec_that_cannot_be_decoded_none_has(acceptance: Acceptance, line: str) -> None:
    acceptance.offer(body(FIRST), MACHINE)
    acceptance.offer(body(FIRST, line, generation=2), MACHINE)
    assert acceptance.assigned == {}


def test_no_line_of_another_object_has_been_accepted(acceptance: Acceptance) -> None:
    acceptance.offer(body(FIRST, generation=5), MACHINE)
    acceptance.offer(body(FIRST, "d/b c cpus=9 since=1 uid=u-b", uid="u2"), MACHINE)
    assert acceptance.refusal is not None
    assert acceptance.assigned == {}
    assert (acceptance.judged.observed, acceptance.enforced) == (
        Generation("u2", 1),
        Generation("u1", 5),
    )


def test_without_an_assignment_nothing_has_been_accepted(acceptance: Acceptance) -> None:
    acceptance.offer(body(FIRST), MACHINE)
    acceptance.retire()
    assert (acceptance.assigned, acceptance.judged.observed) == ({}, Generation())


REFUSED = {"podUID": "u-c", "namespace": "d", "pod": "p", "reason": "NotEnoughCPUs", "message": "m"}


def test_refusals_are_those_of_the_status(acceptance: Acceptance) -> None:
    """They are counted in metrics, and change no generation."""
    acceptance.offer(body(FIRST), MACHINE)
    for refused in ([REFUSED], []):
        acceptance.offer(body(FIRST, status={"refusals": refused}), MACHINE)
        assert acceptance.accepted is not None
        assert list(acceptance.accepted.spec.refused) == refused
        assert acceptance.generation == 1


def test_wrong_refusals_make_no_spec_invalid(acceptance: Acceptance) -> None:
    acceptance.offer(body(FIRST, status={"refusals": "x", "refusalsOmitted": -1}), MACHINE)
    assert acceptance.refusal is None
    assert acceptance.accepted is not None
    assert acceptance.accepted.spec.refused == ()


@pytest.mark.parametrize(
    ("lines", "spec", "same"),
    [
        ((FIRST, SECOND), {}, True),
        ((FIRST,), {"policy": {"name": "p", "generation": 2, "since": 1}}, True),
        ((FIRST,), {"policy": {"name": "p", "generation": 2, "since": 2}}, False),
        ((FIRST,), {"mode": "Dynamic"}, False),
    ],
    ids=["a container", "the same settings", "new settings", "a mode"],
)
def test_what_the_operator_waits_for(
    acceptance: Acceptance, lines: tuple[str, ...], spec: dict[str, Any], same: bool
) -> None:
    policy = {"policy": {"name": "p", "generation": 1, "since": 1}}
    acceptance.offer(body(FIRST, spec=policy), MACHINE)
    before = acceptance.judged.waited_for
    acceptance.offer(body(*lines, generation=2, spec=policy | spec), MACHINE)
    assert before is not None
    assert (acceptance.judged.waited_for == before) is same


def test_it_waits_for_a_container_that_moves(acceptance: Acceptance) -> None:
    acceptance.offer(body("d/a c cpus=2-3 leaving=3 since=1 uid=u-a"), MACHINE)
    assert acceptance.refusal is None
    assert acceptance.judged.waited_for is None
