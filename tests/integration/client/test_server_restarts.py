"""An informer of an API server that is restarted, and of one that lost its data."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from numapin_client.cache.informer import Informer
from numapin_client.cache.informer_settings import InformerTiming
from numapin_client.client import ApiClient, Source, connect
from numapin_client.errors import NotFoundError
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import Json, Key
from numapin_lab.controlplane.servers import ControlPlane, ControlPlanePorts
from numapin_lab.processes.ports import choose
from support.real.proxies.tcp_proxy import Wire, wired_client
from support.real.waiting import eventually, running
from support.values.informers import CONFIG_MAPS, in_sync

TIMING = InformerTiming(backoff_base_seconds=0.05, backoff_cap_seconds=0.5)
SOURCE = Source(CONFIG_MAPS, "default")


@pytest.fixture
def plane(control_plane: ControlPlane, tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane of the test's own, to be ill-treated."""
    own = ControlPlane(tmp_path / "plane", ControlPlanePorts(*choose(3)), control_plane.programs)
    try:
        own.start()
        yield own
    finally:
        own.stop()


@pytest.fixture
async def wired(plane: ControlPlane) -> AsyncIterator[tuple[Wire, ApiClient]]:
    async with wired_client(plane) as made:
        yield made


def config_map(name: str, value: str) -> Json:
    return {"metadata": {"name": name, "namespace": "default"}, "data": {"value": value}}


def value_of(body: Json) -> str:
    return str(body["data"].get("value", ""))


async def write(plane: ControlPlane, name: str, value: str) -> None:
    async with connect(kubeconfig_login(str(plane.kubeconfig))) as direct:
        try:
            await direct.update(CONFIG_MAPS, config_map(name, value))
        except NotFoundError:
            await direct.create(CONFIG_MAPS, config_map(name, value))


async def remove(plane: ControlPlane, name: str) -> None:
    async with connect(kubeconfig_login(str(plane.kubeconfig))) as direct:
        await direct.delete(CONFIG_MAPS, Key(name, "default"))


def values(informer: Informer[str]) -> dict[str, str]:
    return {key.name: value for key, value in informer.items.items()}


async def restart(plane: ControlPlane, wire: Wire) -> None:
    """Bring the control plane back; nothing of the old one's last words gets through."""
    wire.fall_silent()
    wire.cut()
    await asyncio.to_thread(plane.start)
    wire.mend()


async def test_a_change_missed_before_a_restart_is_noticed_after_it(
    plane: ControlPlane, wired: tuple[Wire, ApiClient]
) -> None:
    wire, through = wired
    for name in ("stays", "goes"):
        await write(plane, name, "1")
    informer = Informer(through, SOURCE, value_of, timing=TIMING)
    async with running(informer.run()):
        await informer.synced.wait()
        wire.fall_silent()
        await remove(plane, "goes")
        await write(plane, "comes", "2")
        await asyncio.to_thread(plane.stop)
        await restart(plane, wire)
        await eventually(lambda: values(informer).get("comes") == "2" and in_sync(informer))
        await eventually(lambda: "goes" not in values(informer))
        await write(plane, "after", "3")
        await eventually(lambda: values(informer).get("after") == "3")


async def test_a_server_that_lost_its_data_is_believed(
    plane: ControlPlane, wired: tuple[Wire, ApiClient]
) -> None:
    """Its versions begin again, so a watch from ours would be silent until it has caught up."""
    wire, through = wired
    for number in range(5):
        await write(plane, "of-old", str(number))
    informer = Informer(through, SOURCE, value_of, timing=TIMING)
    async with running(informer.run()):
        await eventually(lambda: values(informer).get("of-old") == "4")
        await asyncio.to_thread(plane.stop)
        await asyncio.to_thread(shutil.rmtree, plane.etcd.folder / "data")
        await restart(plane, wire)
        await write(plane, "of-new", "1")
        await eventually(
            lambda: values(informer).get("of-new") == "1" and "of-old" not in values(informer)
        )
