"""Which drifts are external, and which a late write of the runtime may have made."""

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.plan.drift import Cause
from numapin_enforcer.runtime.interface import ContainerResources
from support.fakes.worlds.followed_node import (
    ALL,
    CONTAINER,
    CPU_2,
    CPU_3,
    ID,
    MEMS,
    Node,
    spec_of,
)


@pytest.mark.parametrize(("written", "is_external"), [("3", False), ("2-3", True), ("0", True)])
async def test_what_the_runtime_repeats_before_it_is_updated_is_no_external_change(
    node: Node, written: str, *, is_external: bool
) -> None:
    await node.enforce(CPU_3)
    node.runtime.may_update.clear()
    await node.make_pass(CPU_2)
    node.model.groups[CONTAINER].cpus = CpuSet.parse(written)
    node.model.written.append(CONTAINER)
    done = await node.make_pass(CPU_2)
    assert [one.path for one in done.drifts] == [CONTAINER]
    assert bool(node.posted.drifts) == is_external
    assert node.model.groups[CONTAINER].cpus == CpuSet([2])
    node.runtime.may_update.set()
    await node.clock.run_tasks()
    assert node.sent[-1] == "2"
    await node.make_pass(CPU_2)
    assert CONTAINER not in node.stale_cpus


async def test_what_others_write_again_is_external_while_the_runtime_does_not_answer(
    node: Node,
) -> None:
    await node.enforce(CPU_3)
    node.runtime.may_update.clear()
    for _ in range(2):
        node.model.groups[CONTAINER].cpus = ALL
        node.model.written.append(CONTAINER)
        await node.make_pass(CPU_3)
    assert [one.found[0] for one in node.posted.drifts] == [ALL, ALL]


async def test_a_late_update_with_the_numa_nodes_of_before_is_no_external_change(
    node: Node,
) -> None:
    """CPUs leave one NUMA node; the runtime is sent them while the memory is being moved."""

    def mems() -> MemSet:
        return node.model.read_one(CONTAINER).effective_mems

    wide, narrow = spec_of("2-3", mems="0-1"), spec_of("3", mems="1")
    for _ in range(3):
        await node.make_pass(wide)
    assert node.runtime.updates[-1] == (ID, ContainerResources(wide.containers[0].cpus, MEMS))
    node.runtime.may_update.clear()
    await node.make_pass(narrow)
    await node.clock.until(lambda: mems() == MemSet([1]))
    await node.make_pass(narrow)
    node.model.groups[CONTAINER].mems = MEMS
    node.model.written.append(CONTAINER)
    done = await node.make_pass(narrow)
    assert [one.cause for one in done.drifts] == [Cause.MEMORY]
    assert node.posted.drifts == []
    node.runtime.may_update.set()
    await node.clock.run_tasks()
    await node.make_pass(narrow)
    await node.clock.until(lambda: mems() == MemSet([1]))
    await node.make_pass(narrow)
    await node.make_pass(narrow)
    assert node.runtime.updates[-1] == (ID, ContainerResources(CpuSet([3]), MemSet([1])))
    assert mems() == MemSet([1])
