"""What the real API server does, and the fake one of the unit tests does alike."""

import asyncio

import pytest

from numapin_client import errors
from numapin_client.cache.informer import Informer
from numapin_client.cache.informer_settings import InformerTiming
from numapin_client.cache.store import Change
from numapin_client.client import ApiClient, Source
from numapin_client.resources import Json, Key
from support.real.waiting import eventually, running
from support.values.informers import CONFIG_MAPS

FAST = InformerTiming(backoff_base_seconds=0.05, chunk_limit=3)


def config_map(namespace: str, name: str, **data: str) -> Json:
    labels = {"tier": name[0]}
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "data": data}


def data_of(body: Json) -> dict[str, str]:
    return dict(body.get("data") or {})


async def test_an_object_is_created_read_changed_and_deleted(
    any_client: ApiClient, namespace: str
) -> None:
    key = Key("settings", namespace)
    created = await any_client.create(CONFIG_MAPS, config_map(namespace, "settings", a="1"))
    assert (await any_client.get(CONFIG_MAPS, key))["data"] == {"a": "1"}

    await any_client.update(CONFIG_MAPS, created | {"data": {"a": "2"}})
    assert (await any_client.get(CONFIG_MAPS, key))["data"] == {"a": "2"}

    await any_client.merge_patch(CONFIG_MAPS, key, {"data": {"b": "3", "a": None}})
    assert (await any_client.get(CONFIG_MAPS, key))["data"] == {"b": "3"}

    await any_client.delete(CONFIG_MAPS, key)
    with pytest.raises(errors.NotFoundError, match=f"{namespace}/configmaps/settings"):
        await any_client.get(CONFIG_MAPS, key)


async def test_an_object_from_a_list_can_be_written_back(
    any_client: ApiClient, namespace: str
) -> None:
    await any_client.create(CONFIG_MAPS, config_map(namespace, "settings", a="1"))
    chosen = Source(CONFIG_MAPS, namespace, field_selector="metadata.name=settings")
    [found] = (await any_client.list_chunk(chosen, limit=0)).items
    assert "kind" not in found
    assert (await any_client.update(CONFIG_MAPS, found | {"data": {}}))["kind"] == "ConfigMap"


async def test_creating_twice_says_that_it_exists(any_client: ApiClient, namespace: str) -> None:
    await any_client.create(CONFIG_MAPS, config_map(namespace, "settings"))
    with pytest.raises(errors.AlreadyExistsError) as caught:
        await any_client.create(CONFIG_MAPS, config_map(namespace, "settings"))
    assert caught.value.status_reason == "AlreadyExists"


async def test_a_stale_version_conflicts(any_client: ApiClient, namespace: str) -> None:
    first = await any_client.create(CONFIG_MAPS, config_map(namespace, "settings", a="1"))
    await any_client.update(CONFIG_MAPS, first | {"data": {"a": "2"}})
    with pytest.raises(errors.ConflictError):
        await any_client.update(CONFIG_MAPS, first | {"data": {"a": "3"}})


@pytest.mark.parametrize("precondition", ["uid", "resource_version"])
async def test_deletion_spares_another_object(
    any_client: ApiClient, namespace: str, precondition: str
) -> None:
    await any_client.create(CONFIG_MAPS, config_map(namespace, "settings"))
    with pytest.raises(errors.ConflictError):
        await any_client.delete(CONFIG_MAPS, Key("settings", namespace), **{precondition: "4711"})
    assert await any_client.get(CONFIG_MAPS, Key("settings", namespace))


async def test_chunks_show_one_moment(any_client: ApiClient, namespace: str) -> None:
    for name in ("a", "b", "c", "d", "e"):
        await any_client.create(CONFIG_MAPS, config_map(namespace, name))
    source = Source(CONFIG_MAPS, namespace)
    first = await any_client.list_chunk(source, limit=2)
    await any_client.delete(CONFIG_MAPS, Key("d", namespace))
    second = await any_client.list_chunk(source, first.next, limit=2)
    third = await any_client.list_chunk(source, second.next, limit=2)
    found = [each["metadata"]["name"] for x in (first, second, third) for each in x.items]
    assert found == ["a", "b", "c", "d", "e"]
    assert first.resource_version == second.resource_version == third.resource_version
    assert not third.next


async def test_selectors_choose(any_client: ApiClient, namespace: str) -> None:
    for name in ("a1", "a2", "b1"):
        await any_client.create(CONFIG_MAPS, config_map(namespace, name))
    found = (
        await any_client.list_chunk(
            Source(CONFIG_MAPS, namespace, label_selector="tier=a"), limit=0
        )
    ).items
    assert sorted(each["metadata"]["name"] for each in found) == ["a1", "a2"]


async def test_an_informer_follows(any_client: ApiClient, namespace: str) -> None:
    for number in range(7):
        await any_client.create(CONFIG_MAPS, config_map(namespace, f"m{number}", a="1"))
    reported: list[Change[dict[str, str]]] = []
    source = Source(CONFIG_MAPS, namespace)
    informer = Informer(any_client, source, data_of, reported.extend, FAST)
    async with running(informer.run()):
        await informer.synced.wait()
        assert len(informer.items) == 7
        key = Key("m1", namespace)
        body = await any_client.get(CONFIG_MAPS, key)
        await any_client.update(CONFIG_MAPS, body | {"data": {"a": "2"}})
        await any_client.delete(CONFIG_MAPS, Key("m2", namespace))
        await any_client.create(CONFIG_MAPS, config_map(namespace, "new", large="x" * 300_000))
        await eventually(lambda: len(reported) == 10)
    assert reported[7:9] == [
        Change(key, {"a": "1"}, {"a": "2"}),
        Change(Key("m2", namespace), {"a": "1"}, None),
    ]
    assert len(informer.items) == 7
    assert len(informer.items[Key("new", namespace)]["large"]) == 300_000


async def test_an_informer_of_one_object_sees_no_other(
    any_client: ApiClient, namespace: str
) -> None:
    source = Source(CONFIG_MAPS, namespace, field_selector="metadata.name=mine")
    informer = Informer(any_client, source, data_of, timing=FAST)
    async with running(informer.run()):
        await informer.synced.wait()
        await any_client.create(CONFIG_MAPS, config_map(namespace, "other"))
        await any_client.create(CONFIG_MAPS, config_map(namespace, "mine"))
        await eventually(lambda: bool(informer.items))
        await asyncio.sleep(0.05)
    assert set(informer.items) == {Key("mine", namespace)}


async def test_an_impossible_version_is_gone_or_refused(
    any_client: ApiClient, namespace: str
) -> None:
    source = Source(CONFIG_MAPS, namespace)
    with pytest.raises(errors.ApiError):
        await any_client.list_chunk(source, "not-a-token", 1)
