"""Which containers the previous enforcer process updated in the runtime."""

from collections.abc import Collection

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_enforcer.runtime.container_index import Row
from numapin_enforcer.runtime.interface import ContainerResources
from numapin_enforcer.runtime.updates.previous_updates import PreviousUpdates
from support.values.specs_and_trees import EXCLUSIVE, GUEST, NAMES, POD, SANDBOX, assigned, spec

ENFORCED = spec(assigned("exclusive", "4-5", "1"), assigned("guest", "0-3", exclusive=False))
FOUND = {id_: Row(id_, f"{POD}/{id_}", "1") for id_ in (EXCLUSIVE, GUEST, SANDBOX)}
OTHER = {"e" * 64: Row("e" * 64, "kubepods/pod2/" + "e" * 64, "2")}
SENT = ContainerResources(CpuSet.parse("4-5"), MemSet.parse("1"))


def started(
    names: dict[str, str],
    enforced: NodeAssignmentSpec | None = ENFORCED,
    done: Collection[str] = (),
) -> PreviousUpdates:
    previous = PreviousUpdates(enforced)
    previous.update(FOUND | OTHER, names, done)
    return previous


def test_an_exclusive_container_was_updated() -> None:
    previous = started(NAMES | {SANDBOX: ""})
    assert set(previous.ids) == {EXCLUSIVE}
    assert previous.resources(NAMES) == {EXCLUSIVE: SENT}


def test_a_container_of_the_same_pod_counts_until_it_has_a_name() -> None:
    previous = started({})
    assert set(previous.ids) == {EXCLUSIVE, GUEST, SANDBOX}
    assert previous.resources({}) == {}


@pytest.mark.parametrize(
    ("expected", "now"),
    [
        ({POD: CpuSet.parse("4-5")}, spec(shared="0-7")),
        ({POD: CpuSet.parse("4-5")}, None),
        ({POD: CpuSet.parse("4-5")}, spec(assigned("exclusive", "6-7"))),
        ({}, spec(assigned("exclusive", "4-5"))),
    ],
    ids=["shared now", "released", "exclusive with other CPUs", "exclusive with the same CPUs"],
)
def test_cpus_that_the_runtime_may_write_to_an_unnamed_container(
    expected: dict[str, CpuSet], now: NodeAssignmentSpec | None
) -> None:
    assert started({}).unnamed(now, {}) == expected
    assert started(NAMES).unnamed(now, NAMES | {SANDBOX: ""}) == {}


@pytest.mark.parametrize(
    ("found", "done"),
    [({}, ()), (FOUND, FOUND)],
    ids=["it ended", "it was updated, or the runtime does not list it"],
)
def test_a_container_is_dropped(found: dict[str, Row], done: Collection[str]) -> None:
    previous = started({})
    previous.update(found, {}, done)
    previous.update(FOUND, {}, ())
    assert set(previous.ids) == set()


def test_a_container_that_starts_later_was_never_updated() -> None:
    previous = PreviousUpdates(ENFORCED)
    previous.update({EXCLUSIVE: FOUND[EXCLUSIVE]}, NAMES, ())
    previous.update(FOUND, {EXCLUSIVE: "exclusive", GUEST: "exclusive"}, ())
    assert set(previous.ids) == {EXCLUSIVE}


def test_nothing_was_updated_without_an_assignment() -> None:
    previous = started(NAMES, None)
    assert set(previous.ids) == set()
    assert previous.resources(NAMES) == {}
    assert previous.unnamed(None, {}) == {}
