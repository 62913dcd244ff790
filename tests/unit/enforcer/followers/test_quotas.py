"""CFS limits after each pass, while the kubelet and the runtime write some of their own."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import NodeAssignmentSpec, Pools
from numapin_campaigns.histories.kernel.model import Group
from numapin_enforcer.cgroups.write import Quota
from numapin_enforcer.runtime.interface import ContainerResources
from support.fakes.manual_clock import LIMIT_SECONDS
from support.fakes.runtime import FakeRuntime
from support.fakes.worlds.followed_node import (
    ALL,
    CONTAINER,
    LIMIT,
    NO_LIMIT,
    POD,
    Node,
    spec_of,
)

UNLIMITED = spec_of("3", cpu_quota="Unlimited")
LEFT = NodeAssignmentSpec(pools=Pools(reserved=CpuSet((0,)), shared=ALL), cpu_quota="Unlimited")
"""The container is no longer exclusive."""


async def test_the_limit_of_a_pod_stays_while_a_sidecar_has_none(node: Node) -> None:
    """The sandbox has none either, and does not count once the runtime has named it."""
    sidecar, sandbox = (f"{POD}/cri-containerd-{id_ * 64}.scope" for id_ in "be")
    for path in (sidecar, sandbox):
        node.model.make(path)
        node.model.written.append(path)
    node.runtime.has("b" * 64, "side")
    node.runtime.has("e" * 64, "")
    node.model.groups[POD].quota = LIMIT
    await node.enforce(UNLIMITED)
    await node.clock.until(lambda: node.model.groups[CONTAINER].quota == NO_LIMIT)
    assert node.model.groups[POD].quota == LIMIT
    node.model.vanish(sidecar)
    node.model.written.append(POD)
    await node.make_pass(UNLIMITED, full=True)
    await node.clock.until(lambda: node.model.groups[POD].quota == NO_LIMIT)


async def test_a_cfs_limit_is_removed_and_restored(node: Node) -> None:
    await node.enforce(UNLIMITED)
    await node.clock.until(lambda: node.model.groups[CONTAINER].quota == NO_LIMIT)
    await node.clock.until(lambda: node.followers.cfs_quota.updater.lifted)
    await node.make_pass(UNLIMITED)
    assert {one.quota_us for _, one in node.runtime.updates} == {0}
    node.rest(left_alone=False)
    await node.clock.until(lambda: node.model.groups[CONTAINER].quota == LIMIT)


@pytest.mark.parametrize("event", ["cpus", "write"])
async def test_a_limit_that_the_kubelet_sets_at_a_resize_is_removed(node: Node, event: str) -> None:
    """By what the spec says, or by the event of the kubelet's write: either may come first."""
    await node.enforce(UNLIMITED)
    await node.clock.until(lambda: node.model.groups[CONTAINER].quota == NO_LIMIT)
    await node.clock.advance(10)
    node.model.groups[CONTAINER].quota = Quota(300_000)
    if event == "write":
        node.model.written.append(CONTAINER)
    await node.make_pass(spec_of("3" if event == "write" else "2-3", cpu_quota="Unlimited"))
    await node.clock.until(lambda: node.model.groups[CONTAINER].quota == NO_LIMIT)


class RuntimeWithQuota(FakeRuntime):
    """Writes the limit that it was sent last at each update, one after the other.

    Source: containerd internal/cri/server/container_update_resources.go (the spec is kept, and
    given to runc as a whole, under a lock of the container).
    """

    def __init__(self, quota_us: int) -> None:
        super().__init__()
        self.quota_us = quota_us
        self.groups: Mapping[str, Group] = {}

    async def update_resources(self, container_id: str, resources: ContainerResources) -> None:
        await super().update_resources(container_id, resources)
        self.resize(resources.quota_us or self.quota_us)

    def resize(self, quota_us: int) -> None:
        """The kubelet updates the container."""
        self.quota_us = quota_us
        self.groups[CONTAINER].quota = Quota(quota_us if quota_us > 0 else None)


async def passes_until(node: Node, holds: Callable[[], object], spec: NodeAssignmentSpec) -> None:
    """Make passes and let time go on until it holds; a disk takes real time."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while not holds():
            await node.clock.advance(1)
            await node.make_pass(spec)


@pytest.fixture
async def lifted(
    tmp_path: Path, wake: asyncio.Event, start: Callable[[Awaitable[None]], None]
) -> tuple[Node, RuntimeWithQuota]:
    """A node whose runtime has a limit for a container that has none in the kernel."""
    node = Node(tmp_path, runtime := RuntimeWithQuota(200_000), wake)
    runtime.groups = node.model.groups
    node.start(start)

    def is_lifted() -> bool:
        sent, cfs_quota = bool(runtime.updates), node.followers.cfs_quota.updater
        return sent and node.model.groups[CONTAINER].quota == NO_LIMIT and bool(cfs_quota.lifted)

    await passes_until(node, is_lifted, UNLIMITED)
    return node, runtime


@pytest.mark.parametrize("first", ["the kubelet", "numapin"])
async def test_the_limit_of_a_resize_wins_over_an_update_of_ours_at_the_same_time(
    lifted: tuple[Node, RuntimeWithQuota], first: str
) -> None:
    """The kubelet's update of the runtime is made while ours waits, or after it."""
    node, runtime = lifted
    sent = len(runtime.updates)
    runtime.may_update.clear()
    await passes_until(node, lambda: node.followers.runtime.updater.pending_ids, LEFT)
    if first == "the kubelet":
        runtime.resize(150_000)
    runtime.may_update.set()
    await node.clock.until(lambda: len(runtime.updates) > sent)
    if first != "the kubelet":
        runtime.resize(150_000)
    await passes_until(node, lambda: not node.followers.cfs_quota.updater.lifted, LEFT)
    for _ in range(3):
        await node.make_pass(LEFT, full=True)
    assert (runtime.quota_us, node.model.groups[CONTAINER].quota) == (150_000, Quota(150_000))


async def test_a_limit_that_an_earlier_version_removed_in_the_runtime_is_sent_once(
    lifted: tuple[Node, RuntimeWithQuota],
) -> None:
    node, runtime = lifted
    runtime.quota_us = -1
    await passes_until(node, lambda: runtime.quota_us == LIMIT.quota_us, LEFT)
    for _ in range(2):
        await node.make_pass(LEFT)
    assert [one.quota_us for _, one in runtime.updates][-2:] == [LIMIT.quota_us, 0]
    assert node.model.groups[CONTAINER].quota == LIMIT
