"""What the operator asks of the API server that the fake of `Cluster` does not show."""

import asyncio
from functools import partial

import pytest

from numapin_client.client import connect
from numapin_client.resources import CPU_POLICIES
from numapin_daemon.slices import Slices
from numapin_operator import api_server
from numapin_operator.api_server import LIST_CHUNK, ApiCluster
from numapin_operator.cluster import PodEvent
from support.fakes.apiserver import FakeApiServer
from support.real.waiting import running
from support.values.operator import REPORTER, policy_body


async def test_an_event_about_a_pod_has_the_action_that_failed() -> None:
    """Source: Kubernetes `events.k8s.io/v1`, `Event.action`: "taken/failed", not empty."""
    event = PodEvent("ns", "pod", "uid-1", "TopologyAffinityError", "no NUMA node has 8 CPUs")
    async with FakeApiServer() as server, connect(server.login) as api:
        await ApiCluster(api, REPORTER).post_event(event)
        (posted,) = server.objects.values()
    assert (posted["type"], posted["action"]) == ("Warning", "Place")
    assert (posted["reason"], posted["note"]) == (event.reason, event.note)
    assert posted["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "ns",
        "name": "pod",
        "uid": "uid-1",
    }


async def test_other_tasks_get_turns_while_a_list_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(api_server, "Slices", partial(Slices, slice_seconds=0.0))
    turns: list[int] = [0]

    async def count() -> None:
        while True:
            await asyncio.sleep(0)
            turns[0] += 1

    async with FakeApiServer() as server, connect(server.login) as api:
        for number in range(LIST_CHUNK + 10):
            server.put(CPU_POLICIES, policy_body(f"policy-{number}"))
        async with running(count()):
            listed = await ApiCluster(api, REPORTER).list_policies()
    assert len(listed.states) == LIST_CHUNK + 10
    assert turns[0] >= len(listed.states)
