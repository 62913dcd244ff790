"""Passes on a node whose kernel makes partitions: the model of cgroup v2 and that of partitions."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import IsolationStatus, NodeAssignmentSpec
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.partitions.plan import UNTOUCHED, PartitionWrite, State
from support.fakes.kernels.partitions import PartitionModel
from support.fakes.runtime import FakeRuntime
from support.fakes.worlds.followed_node import (
    ALL,
    BURSTABLE,
    CONTAINER,
    CPU_2,
    CPU_3,
    POD,
    ROOT,
    Node,
    spec_of,
)

NEW = f"{ROOT}/kubepods-pod2.slice"


class Linked(PartitionModel):
    """Valid partitions take their CPUs in the model of cgroups."""

    def __init__(self, node: Node) -> None:
        super().__init__(ALL, (ROOT, POD, CONTAINER))
        self.node = node

    def write(self, write: PartitionWrite) -> None:
        super().write(write)
        self.link()

    def link(self) -> None:
        self.node.model.partitions = {
            path: one.exclusive
            for path, one in self.states.items()
            if one.partition in {"root", "isolated"}
        }


@pytest.fixture
def kernel(node: Node) -> Linked:
    made = Linked(node)
    node.followers.partitions.files_of = lambda _: made
    return made


def partition(spec: NodeAssignmentSpec) -> NodeAssignmentSpec:
    return replace(spec, isolation="Partition")


def effective(node: Node, path: str) -> str:
    return str(node.model.read_effective_cpus(path))


def root(cpus: str) -> State:
    return State(CpuSet.parse(cpus), "root")


async def enforce(node: Node, spec: NodeAssignmentSpec | None) -> None:
    """Passes until nothing is left; the first is made as an agent does."""
    for _ in range(3):
        node.followers.prepare(node.begin(spec))
        await node.make_pass(spec)


async def test_a_container_becomes_a_partition_when_it_has_its_cpus(
    node: Node, kernel: Linked
) -> None:
    await enforce(node, partition(CPU_2))
    assert kernel.states[CONTAINER] == root("2")
    assert (effective(node, ROOT), effective(node, CONTAINER)) == ("0-1,3", "2")
    assert node.followers.partitions.status() == IsolationStatus(partitions=CpuSet((2,)))
    assert node.last.result.complete
    writes = len(kernel.writes)
    await enforce(node, partition(CPU_2))
    assert (len(kernel.writes), node.last.result.made) == (writes, ())


async def test_a_new_pod_is_given_a_set_of_its_own_although_it_needs_none_now(
    node: Node, kernel: Linked
) -> None:
    await enforce(node, partition(CPU_2))
    node.model.make(NEW)
    assert effective(node, NEW) == "0-1,3"
    await enforce(node, partition(CPU_2))
    assert str(node.model.groups[NEW].cpus) == "0-1,3"
    kernel.states[CONTAINER] = UNTOUCHED
    kernel.link()
    assert effective(node, NEW) == "0-1,3", "the partition has ended"


@pytest.mark.parametrize("cpus", ["3", "1-2", "1,3"])
async def test_other_cpus_are_written_without_a_partition(
    node: Node, kernel: Linked, cpus: str
) -> None:
    await enforce(node, partition(CPU_2))
    moved = partition(spec_of(cpus))
    found: list[State] = []

    def note(write: Write) -> None:
        if write.path == CONTAINER and write.value != kernel.states[CONTAINER].exclusive:
            found.append(kernel.states[CONTAINER])

    node.model.before_write = note
    await enforce(node, moved)
    assert set(found) == {UNTOUCHED}
    assert kernel.states[CONTAINER] == root(cpus)
    assert effective(node, CONTAINER) == cpus


async def test_all_ends_without_partitions_and_with_a_release(node: Node, kernel: Linked) -> None:
    for after in (CPU_2, None):
        await enforce(node, partition(CPU_2))
        await enforce(node, after)
        assert set(kernel.states.values()) == {UNTOUCHED}
        assert node.followers.partitions.status() is None
    assert effective(node, CONTAINER) == "0-3"


async def test_a_change_by_others_is_reverted_and_counted(node: Node, kernel: Linked) -> None:
    await enforce(node, partition(CPU_2))
    kernel.states[CONTAINER] = State(CpuSet((2,)))
    kernel.link()
    await node.make_pass(partition(CPU_2))
    assert kernel.states[CONTAINER] == root("2")
    assert node.followers.changes.count.causes["Partition"] == 1


async def test_what_the_runtime_writes_changes_nothing_and_is_reverted(
    node: Node, kernel: Linked
) -> None:
    await enforce(node, partition(CPU_2))
    node.model.write(Write(CONTAINER, CpuSet((1, 2)), Step.GRANT))
    node.model.write(Write(BURSTABLE, ALL, Step.GRANT))
    assert (effective(node, CONTAINER), effective(node, BURSTABLE)) == ("2", "0-1,3")
    await enforce(node, partition(CPU_2))
    assert str(node.model.groups[BURSTABLE].cpus) == "0-1,3"
    assert kernel.states[CONTAINER] == root("2")


async def test_a_process_that_begins_finds_what_the_last_one_left(
    node: Node,
    kernel: Linked,
    tmp_path: Path,
    start: Callable[[Awaitable[None]], None],
) -> None:
    await enforce(node, partition(CPU_3))
    again = Node(tmp_path, FakeRuntime(), asyncio.Event())
    again.start(start)
    again.followers.partitions.files_of = lambda _: kernel
    kernel.node = again
    kernel.link()
    assert effective(again, CONTAINER) == "3"
    await enforce(again, CPU_3)
    assert set(kernel.states.values()) == {UNTOUCHED}


@pytest.mark.parametrize(
    ("break_", "reason"),
    [
        (lambda kernel: kernel.states.clear(), "PartitionsUnsupported"),
        (lambda kernel: setattr(kernel, "is_permitted", False), "PartitionRefused"),
    ],
)
async def test_without_partitions_the_cpuset_is_in_force_and_the_reason_is_said(
    node: Node, kernel: Linked, break_: Callable[[Linked], None], reason: str
) -> None:
    break_(kernel)
    await enforce(node, partition(CPU_2))
    said = node.followers.partitions.state()
    assert [str(one.reason) for one in (*said.stalled, *said.working)] == [reason]
    assert effective(node, CONTAINER) == "2"
    assert node.last.result.complete
    await enforce(node, CPU_2)
    assert node.followers.partitions.state() == type(said)()


async def test_nothing_is_read_while_no_policy_asks(node: Node, kernel: Linked) -> None:
    kernel.states.clear()
    await enforce(node, CPU_2)
    assert (kernel.writes, node.followers.partitions.status()) == ([], None)


async def test_nothing_is_written_while_memory_moves(node: Node, kernel: Linked) -> None:
    with node.followers.partitions.gate.moving():
        await enforce(node, partition(CPU_2))
        assert kernel.writes == []
    await enforce(node, partition(CPU_2))
    assert kernel.states[CONTAINER] == root("2")
