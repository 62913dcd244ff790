"""An informer of a real API server whose connection is cut, and whose history is lost."""

import asyncio
import json
from collections.abc import AsyncIterator
from urllib.request import urlopen

import pytest

from numapin_client import errors
from numapin_client.cache.informer import Informer
from numapin_client.cache.informer_settings import InformerTiming
from numapin_client.cache.watch import WatchEvent, WatchTiming, watch
from numapin_client.client import ApiClient, Source
from numapin_client.resources import PODS, Json, Key
from numapin_lab.controlplane.servers import ControlPlane
from support.real.proxies.tcp_proxy import Wire, wired_client
from support.real.waiting import eventually, running
from support.values.informers import CONFIG_MAPS, CountingClient, in_sync, value_of


@pytest.fixture
async def wired(control_plane: ControlPlane) -> AsyncIterator[tuple[Wire, ApiClient]]:
    async with wired_client(control_plane) as made:
        yield made


def config_map(namespace: str, name: str, value: str) -> Json:
    return {"metadata": {"name": name, "namespace": namespace}, "data": {"value": value}}


async def test_a_cut_connection_costs_no_list(
    client: ApiClient, wired: tuple[Wire, ApiClient], namespace: str
) -> None:
    wire, through = wired
    counting = CountingClient(through.connection)
    timing = InformerTiming(backoff_base_seconds=0.05)
    informer = Informer(counting, Source(CONFIG_MAPS, namespace), value_of, timing=timing)
    async with running(informer.run()):
        for round_number in range(5):
            await eventually(lambda: in_sync(informer))
            wire.cut()
            await client.create(CONFIG_MAPS, config_map(namespace, f"m{round_number}", "1"))
            await eventually(lambda n=round_number: len(informer.items) == n + 1)  # type: ignore[misc]
    assert counting.lists == 1


async def test_a_silent_connection_is_detected_and_missed_changes_are_listed(
    client: ApiClient, wired: tuple[Wire, ApiClient], namespace: str
) -> None:
    wire, through = wired
    timing = InformerTiming((1.0, 1.0), 0.5, backoff_base_seconds=0.05, backoff_cap_seconds=0.2)
    await client.create(CONFIG_MAPS, config_map(namespace, "goes", "1"))
    informer = Informer(through, Source(CONFIG_MAPS, namespace), value_of, timing=timing)
    async with running(informer.run()):
        await informer.synced.wait()
        wire.fall_silent()
        await client.delete(CONFIG_MAPS, Key("goes", namespace))
        await client.create(CONFIG_MAPS, config_map(namespace, "comes", "2"))
        await eventually(lambda: not in_sync(informer))
        wire.mend()
        await eventually(lambda: informer.items == {Key("comes", namespace): "2"})


async def test_short_watches_lose_nothing(client: ApiClient, namespace: str) -> None:
    """The server ends each watch after a second; every change comes exactly once."""
    reported: list[str] = []
    timing = InformerTiming(session_seconds=(1.0, 1.0), backoff_base_seconds=0.01)
    counting = CountingClient(client.connection)
    informer = Informer(
        counting,
        Source(CONFIG_MAPS, namespace),
        value_of,
        lambda changes: reported.extend(str(change.new) for change in changes),
        timing,
    )
    async with running(informer.run()):
        await informer.synced.wait()
        for number in range(60):
            write = client.update if number else client.create
            await write(CONFIG_MAPS, config_map(namespace, "m", str(number)))
            await eventually(lambda n=number: reported[-1:] == [str(n)])  # type: ignore[misc]
    assert reported == [str(number) for number in range(60)]
    assert counting.lists == 1


async def test_quiet_kinds_are_not_listed_again_after_a_compaction(
    control_plane: ControlPlane, client: ApiClient, namespace: str
) -> None:
    """The bookmark before the end of a watch carries the version past what etcd forgets."""
    timing = InformerTiming(session_seconds=(4.0, 4.0), backoff_base_seconds=0.01)
    counting = CountingClient(client.connection)
    informer = Informer(counting, Source(CONFIG_MAPS, namespace), value_of, timing=timing)
    async with running(informer.run()):
        await informer.synced.wait()
        for number in range(200):
            await client.create(CONFIG_MAPS, config_map("default", f"{namespace}-{number}", "1"))
        newest = await client.get(CONFIG_MAPS, Key(f"{namespace}-199", "default"))
        version = int(newest["metadata"]["resourceVersion"])
        await eventually(lambda: int(informer._version) >= version, "a bookmark")
        await asyncio.to_thread(compact, control_plane)
        for number in range(3):
            await client.create(CONFIG_MAPS, config_map(namespace, f"m{number}", "1"))
            await eventually(lambda n=number: len(informer.items) == n + 1)  # type: ignore[misc]
    assert counting.lists == 1


def compact(plane: ControlPlane) -> None:
    """Have etcd drop every old state."""
    url = f"http://127.0.0.1:{plane.ports.etcd}/v3/kv/"
    with urlopen(f"{url}range", b'{"key": "AA=="}') as answer:
        revision = json.load(answer)["header"]["revision"]
    body = json.dumps({"revision": revision, "physical": True}).encode()
    with urlopen(f"{url}compaction", body):
        pass


async def test_an_object_that_leaves_a_selector_is_reported_as_gone(
    client: ApiClient, namespace: str
) -> None:
    """As a pod does that is bound to another node, or ends."""
    pod = {
        "metadata": {"name": "p", "namespace": namespace},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "localhost/pause:1"}]},
    }
    selector = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
    source = Source(PODS, namespace, field_selector=selector)
    informer = Informer(client, source, lambda body: str(body["spec"]["nodeName"]))
    async with running(informer.run()):
        await informer.synced.wait()
        await client.create(PODS, pod)
        await eventually(lambda: informer.items == {Key("p", namespace): "n"})
        ended = {"status": {"phase": "Succeeded"}}
        await client.merge_patch(PODS, Key("p", namespace), ended, subresource="status")
        await eventually(lambda: not informer.items)


async def test_a_watch_from_a_future_version_gets_no_events(
    client: ApiClient, namespace: str
) -> None:
    """Why versions are compared: a server with a new etcd treats us like this."""
    source = Source(CONFIG_MAPS, namespace)
    await client.create(CONFIG_MAPS, config_map(namespace, "unseen", "1"))
    future = watch(client.connection, source, str(2**40), WatchTiming(60, 2))
    reported: list[WatchEvent] = []

    async def listen() -> None:
        async for events in future:
            reported.extend(events)

    with pytest.raises(errors.IdleTimeoutError):
        await listen()
    assert not reported
