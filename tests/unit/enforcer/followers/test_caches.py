"""Caches after each pass: shared out while the spec says so, left or restored otherwise."""

from dataclasses import replace
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import Cache, CacheClasses, ExclusiveClass, NodeAssignmentSpec
from numapin_enforcer.resctrl.files import Resctrl
from numapin_enforcer.resctrl.saved import FILE_NAME
from numapin_enforcer.resctrl.updater import Host
from numapin_enforcer.resctrl.values import GROUP
from support.fakes.kernels.resctrl import FakeResctrl
from support.fakes.worlds.followed_node import ALL, CPU_2, CPU_3, Node

CACHE = Cache(CacheClasses(ExclusiveClass(l3_percent=40)))


def sharing(spec: NodeAssignmentSpec) -> NodeAssignmentSpec:
    return replace(spec, cache=CACHE)


@pytest.fixture
def kernel(node: Node, tmp_path: Path) -> FakeResctrl:
    made = FakeResctrl(ALL, caches=(0,))
    node.followers.caches.updater.host = Host(Resctrl(made), tmp_path, "boot")
    return made


async def has(node: Node, kernel: FakeResctrl, cpus: str) -> None:
    await node.clock.until(
        lambda: GROUP in kernel.all_groups and str(kernel.all_groups[GROUP].cpus) == cpus
    )


async def test_caches_follow_exclusive_cpus(node: Node, kernel: FakeResctrl) -> None:
    await node.make_pass(sharing(CPU_2))
    await has(node, kernel, "2")
    await node.clock.until(lambda: node.followers.caches.updater.outcome.cpus)
    cache = node.facts().content.cache
    assert cache is not None
    assert cache.to_wire() == {"cpus": "2", "schemata": "L3:0=1f MB:0=100"}
    await node.make_pass(sharing(CPU_3))
    await has(node, kernel, "3")


async def test_nothing_is_read_of_caches_that_are_left_alone(
    node: Node, kernel: FakeResctrl
) -> None:
    await node.make_pass(CPU_2)
    await node.make_pass(None)
    assert kernel.reads == 0
    assert node.facts().content.cache is None


@pytest.mark.parametrize("spec", [None, CPU_2], ids=["no policy", "no cache"])
async def test_caches_are_restored(
    node: Node, kernel: FakeResctrl, tmp_path: Path, spec: NodeAssignmentSpec | None
) -> None:
    found = kernel.everything()
    await node.make_pass(sharing(CPU_2))
    await has(node, kernel, "2")
    await node.make_pass(spec)
    await node.clock.until(lambda: not (tmp_path / FILE_NAME).exists())
    assert kernel.everything() == found
    await node.clock.until(lambda: not node.followers.caches.updater.outcome.cpus)
    assert node.followers.caches.state().working == ()


async def test_an_audit_writes_nothing(node: Node, kernel: FakeResctrl) -> None:
    await node.make_pass(replace(sharing(CPU_2), mode="Audit"))
    await node.clock.advance(100)
    assert (kernel.reads, node.facts().content.cache) == (0, None)


async def test_a_node_that_is_left_alone_keeps_its_caches(node: Node, kernel: FakeResctrl) -> None:
    await node.make_pass(sharing(CPU_2))
    await has(node, kernel, "2")
    node.rest(left_alone=True)
    await node.clock.advance(100)
    await has(node, kernel, "2")


async def test_without_resctrl_the_report_says_what_is_missing(
    node: Node, kernel: FakeResctrl
) -> None:
    kernel.mounted = False
    await node.make_pass(sharing(CPU_2))
    state = node.followers.caches.state
    await node.clock.until(lambda: state().note)
    assert (state().reason, state().stalled, state().working) == ("CacheNotSharedOut", (), ())
    cache = node.facts().content.cache
    assert cache is not None
    assert (cache.cpus, "mount -t resctrl" in str(cache.message)) == (CpuSet(), True)


async def test_what_others_change_is_counted(node: Node, kernel: FakeResctrl) -> None:
    await node.make_pass(sharing(CPU_2))
    await node.clock.until(lambda: node.followers.caches.updater.outcome.cpus)
    kernel.remove(GROUP)
    await node.clock.advance(10)
    await node.clock.until(lambda: node.followers.changes.count.total)
    assert node.facts().content.drift_causes == {"Cache": 1}
    await has(node, kernel, "2")
