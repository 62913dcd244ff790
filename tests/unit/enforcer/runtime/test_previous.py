"""What an enforcer counts on the runtime remembering, from the one that ran before it."""

from collections.abc import Collection

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_enforcer.runtime.previous import PreviousUpdates
from numapin_enforcer.runtime.types import ContainerResources
from support.values.specs_and_trees import GUEST, NAMES, OWNER, POD, SANDBOX, assigned, spec

KEPT = spec(assigned("owner", "4-5", "1"), assigned("guest", "0-3", exclusive=False))
FOUND = {id_: (f"{POD}/{id_}", "1") for id_ in (OWNER, GUEST, SANDBOX)}
OTHER = {"e" * 64: ("kubepods/pod2/" + "e" * 64, "2")}
SENT = ContainerResources(CpuSet.parse("4-5"), MemSet.parse("1"))


def started(
    names: dict[str, str], kept: NodeAssignmentSpec | None = KEPT, done: Collection[str] = ()
) -> PreviousUpdates:
    previous = PreviousUpdates(kept)
    previous.update(FOUND | OTHER, names, done)
    return previous


def test_a_container_that_owned_cpus_was_told_of() -> None:
    previous = started(NAMES | {SANDBOX: ""})
    assert set(previous.ids) == {OWNER}
    assert previous.records(NAMES) == {OWNER: SENT}


def test_a_container_of_the_same_pod_may_be_the_one_until_it_has_a_name() -> None:
    previous = started({})
    assert set(previous.ids) == {OWNER, GUEST, SANDBOX}
    assert previous.records({}) == {}


@pytest.mark.parametrize(
    ("expected", "now"),
    [
        ({POD: CpuSet.parse("4-5")}, spec(shared="0-7")),
        ({POD: CpuSet.parse("4-5")}, None),
        ({POD: CpuSet.parse("4-5")}, spec(assigned("owner", "6-7"))),
        ({}, spec(assigned("owner", "4-5"))),
    ],
    ids=["shares now", "all is given back", "owns other CPUs", "owns the same"],
)
def test_cpus_that_an_unnamed_container_may_be_given_again(
    expected: dict[str, CpuSet], now: NodeAssignmentSpec | None
) -> None:
    assert started({}).unnamed(now, {}) == expected
    assert started(NAMES).unnamed(now, NAMES | {SANDBOX: ""}) == {}


@pytest.mark.parametrize(
    ("found", "done"),
    [({}, ()), (FOUND, FOUND)],
    ids=["it ended", "it was told of again, or the runtime does not list it"],
)
def test_a_container_counts_no_more(
    found: dict[str, tuple[str, str]], done: Collection[str]
) -> None:
    previous = started({})
    previous.update(found, {}, done)
    previous.update(FOUND, {}, ())
    assert set(previous.ids) == set()


def test_a_container_that_starts_later_was_never_told_of() -> None:
    previous = PreviousUpdates(KEPT)
    previous.update({OWNER: FOUND[OWNER]}, NAMES, ())
    previous.update(FOUND, {OWNER: "owner", GUEST: "owner"}, ())
    assert set(previous.ids) == {OWNER}


def test_without_a_kept_assignment_nothing_was_told() -> None:
    previous = started(NAMES, None)
    assert set(previous.ids) == set()
    assert previous.records(NAMES) == {}
    assert previous.unnamed(None, {}) == {}
