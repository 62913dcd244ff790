"""Interrupts after each pass: kept off while the spec says so, left or restored otherwise."""

from dataclasses import replace
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import NodeAssignmentSpec, System
from numapin_enforcer.interrupts.saved_masks import FILE_NAME
from numapin_enforcer.interrupts.updater import Host
from support.fakes.kernels.masks import FakeMasks
from support.fakes.worlds.followed_node import ALL, CPU_2, CPU_3, Node

KEEP_OFF = System(interrupts="KeepOff")


def keeping_off(spec: NodeAssignmentSpec) -> NodeAssignmentSpec:
    return replace(spec, system=KEEP_OFF)


@pytest.fixture
def kernel(node: Node, tmp_path: Path) -> FakeMasks:
    made = FakeMasks(ALL)
    made.plug("24", "eth0-rx")
    node.followers.interrupts.updater.host = Host(made, tmp_path, "boot")
    return made


async def has(node: Node, kernel: FakeMasks, cpus: str) -> None:
    await node.clock.until(lambda: kernel.interrupts["24"].cpus == CpuSet.parse(cpus))


async def test_interrupts_follow_exclusive_cpus(node: Node, kernel: FakeMasks) -> None:
    await node.make_pass(keeping_off(CPU_2))
    await has(node, kernel, "0-1,3")
    updater = node.followers.interrupts.updater
    await node.clock.until(lambda: updater.outcome.kept_off)
    system = node.facts().content.system
    assert system is not None
    assert system.to_wire() == {"interrupts": {"keptOff": "2"}}
    await node.make_pass(keeping_off(CPU_3))
    await has(node, kernel, "0-2")


async def test_nothing_is_read_of_interrupts_that_are_left_alone(
    node: Node, kernel: FakeMasks
) -> None:
    await node.make_pass(CPU_2)
    await node.make_pass(None)
    assert kernel.reads == 0
    assert node.facts().content.system is None


@pytest.mark.parametrize("spec", [None, CPU_2], ids=["no policy", "Leave"])
async def test_interrupts_are_restored(
    node: Node, kernel: FakeMasks, tmp_path: Path, spec: NodeAssignmentSpec | None
) -> None:
    await node.make_pass(keeping_off(CPU_2))
    await has(node, kernel, "0-1,3")
    await node.make_pass(spec)
    await node.clock.until(lambda: not (tmp_path / FILE_NAME).exists())
    assert set(kernel.everything().values()) == {ALL}


async def test_a_node_that_is_left_alone_keeps_its_interrupts(
    node: Node, kernel: FakeMasks
) -> None:
    await node.make_pass(keeping_off(CPU_2))
    await has(node, kernel, "0-1,3")
    node.rest(left_alone=True)
    await node.clock.advance(100)
    await has(node, kernel, "0-1,3")


async def test_without_the_right_the_report_says_what_is_missing(
    node: Node, kernel: FakeMasks
) -> None:
    kernel.read_only = True
    await node.make_pass(keeping_off(CPU_2))
    state = node.followers.interrupts.state
    await node.clock.until(lambda: state().note)
    assert (state().reason, state().stalled, state().working) == ("InterruptsNotMoved", (), ())
    system = node.facts().content.system
    assert system is not None
    assert system.interrupts is not None
    assert (system.interrupts.kept_off, "EROFS" in str(system.interrupts.message)) == (
        CpuSet(),
        True,
    )


async def test_what_others_set_is_counted(node: Node, kernel: FakeMasks) -> None:
    await node.make_pass(keeping_off(CPU_2))
    await has(node, kernel, "0-1,3")
    kernel.set("24", CpuSet.parse("2"))
    await node.clock.until(lambda: len(node.clock.pending_seconds()) > 0)
    await node.clock.advance(10)
    await node.clock.until(lambda: node.followers.changes.count.total)
    assert node.facts().content.drift_causes == {"Interrupt": 1}
