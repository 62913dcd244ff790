"""The Lease of the node is renewed while passes do their work, and by nothing else."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from numapin_client.errors import ClientError, ForbiddenError, NotFoundError, ServerTimeoutError
from numapin_client.resources import LEASES, Json, Key, Resource
from numapin_enforcer.node.heartbeat import HUNG_SECONDS, MOST_VAIN_PASSES, Progress
from numapin_enforcer.status.node_lease import (
    LEASE_SECONDS,
    REFUSED_SECONDS,
    RENEW_SECONDS,
    RETRY_SECONDS,
    NodeLease,
)
from support.fakes.manual_clock import ManualClock
from support.real.waiting import running

ASSIGNMENT: Json = {"metadata": {"name": "n", "uid": "u1", "resourceVersion": "5"}}


class LeaseStore:
    """Leases that are created and patched; refuses with what stands first in `refusals`."""

    def __init__(self) -> None:
        self.body: Json | None = None
        self.requests = 0
        self.refusals: list[ClientError] = []

    async def merge_patch(self, resource: Resource, key: Key, patch: Json) -> Json:
        self._ask(resource)
        if self.body is None:
            raise NotFoundError(f"PATCH {key}", 404, {"reason": "NotFound"})
        self.body = self.body | patch
        return self.body

    async def create(self, resource: Resource, body: Json) -> Json:
        self._ask(resource)
        self.body = body
        return body

    def _ask(self, resource: Resource) -> None:
        assert resource == LEASES
        self.requests += 1
        if self.refusals:
            raise self.refusals.pop(0)


class Node:
    """An enforcer's Lease, its progress, and whether it has an assignment."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock, self.api, self.progress = clock, LeaseStore(), Progress(clock.monotonic)
        self.assignment: Json | None = ASSIGNMENT
        lease = Key("n", "numapin-system")
        progress = self.progress
        self.lease = NodeLease(
            self.api, lease, lambda: progress.problem, lambda: self.assignment, clock
        )
        self.progress.expect(1e9)

    @property
    def renewed(self) -> Any:
        return self.api.body["spec"]["renewTime"] if self.api.body else None


@pytest.fixture
async def node(clock: ManualClock) -> AsyncIterator[Node]:
    made = Node(clock)
    async with running(made.lease.run()):
        await clock.run_tasks()
        yield made


async def test_it_is_made_once_and_goes_with_the_assignment(node: Node) -> None:
    await node.clock.advance(1)
    assert node.api.body == {
        "metadata": {
            "name": "n",
            "namespace": "numapin-system",
            "labels": {
                "app.kubernetes.io/component": "enforcer",
                "app.kubernetes.io/name": "numapin",
            },
            "ownerReferences": [
                {
                    "apiVersion": "numapin.io/v1beta1",
                    "kind": "NodeAssignment",
                    "name": "n",
                    "uid": "u1",
                }
            ],
        },
        "spec": {
            "holderIdentity": "n",
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": "2030-01-01T00:00:00.000000Z",
        },
    }


async def test_it_is_renewed_by_one_request_each_20_seconds(node: Node) -> None:
    await node.clock.advance(1)
    node.api.requests = 0
    await node.clock.advance(100 * RENEW_SECONDS)
    assert node.api.requests == pytest.approx(100, abs=5)


async def test_without_an_assignment_nothing_is_renewed(clock: ManualClock) -> None:
    node = Node(clock)
    node.assignment = None
    async with running(node.lease.run()):
        await clock.advance(300)
        assert node.api.requests == 0
        node.assignment = ASSIGNMENT
        await clock.advance(2 * RETRY_SECONDS)
        assert node.renewed


async def test_a_hung_enforcer_does_not_renew_until_passes_come_again(node: Node) -> None:
    node.progress.expect(0)
    await node.clock.advance(HUNG_SECONDS + 1)
    before = node.renewed
    await node.clock.advance(600)
    assert node.renewed == before
    node.progress.expect(600)
    await node.clock.advance(2 * RETRY_SECONDS)
    assert node.renewed > before


async def test_passes_in_vain_do_not_renew(node: Node) -> None:
    for _ in range(MOST_VAIN_PASSES):
        node.progress.passed(in_vain=True)
    before = node.renewed
    await node.clock.advance(600)
    assert node.renewed == before


async def test_refusals_are_logged_once_and_tried_again_soon_then_later(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    """As by an API server that has just started, and by a role older than this enforcer."""
    refused = ForbiddenError("PATCH", 403, {"reason": "Forbidden"})
    node.api.refusals = [refused]
    await node.clock.advance(1.2 * (RENEW_SECONDS + RETRY_SECONDS))
    assert node.api.refusals == []
    assert node.renewed > "2030-01-01T00:00:20"
    node.api.refusals = [refused] * 1000
    await node.clock.advance(3600)
    asked = 1000 - len(node.api.refusals)
    assert 3600 / REFUSED_SECONDS < asked < 2 * 3600 / REFUSED_SECONDS
    assert caplog.messages == ["the node's Lease could not be renewed"] * 2
    node.api.refusals = []
    before = node.renewed
    await node.clock.advance(1.2 * REFUSED_SECONDS)
    assert node.renewed > before


async def test_other_failures_are_tried_again_soon(node: Node) -> None:
    node.api.refusals = [ServerTimeoutError("PATCH", 504, {})] * 20
    await node.clock.advance(1.2 * (RENEW_SECONDS + 20 * RETRY_SECONDS))
    assert node.api.refusals == []
