"""The client against a real gRPC server that hangs, refuses, or sends what no kubelet sends."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from numapin_enforcer.podresources.client import MOST_BYTES, MOST_DEVICES, PodResourcesClient
from numapin_enforcer.podresources.devices import Devices, Places
from numapin_enforcer.podresources.interface import PodResourcesError
from numapin_enforcer.podresources.pod_rows import PodAnswer
from numapin_enforcer.runtime.generated import podresources_v1_pb2 as pb
from support.fakes.kubelets.podresources import BURST, FakeKubelet, serve
from support.fakes.manual_clock import ManualClock

GPU = "example.com/gpu"
PLACES = Places(frozenset({0, 1}))
GPU_0, GPU_1 = Devices(GPU, (0,), 1, ("g0",)), Devices(GPU, (0, 1), 1, ("g1",))


def kubelet() -> FakeKubelet:
    made = FakeKubelet(devices=[(GPU, "g0", (0,)), (GPU, "g1", (0, 1))])
    made.has("d/a", c=[(GPU, "g1", (0, 1))], sidecar=[])
    made.has("d/b", c=[])
    return made


async def test_devices_and_pods_are_listed(tmp_path: Path) -> None:
    socket = tmp_path / "kubelet.sock"
    async with serve(kubelet(), socket), PodResourcesClient(socket) as client:
        assert await client.devices(PLACES) == (GPU_0, GPU_1)
        rows = {"d/a": (("c", GPU_1),)}
        assert await client.pods(PLACES) == PodAnswer(frozenset({"d/a", "d/b"}), rows)


async def test_a_name_that_is_listed_twice_counts_for_none(tmp_path: Path) -> None:
    made, socket = kubelet(), tmp_path / "kubelet.sock"
    made.has("d/a", c=[(GPU, "g0", (0,))])
    async with serve(made, socket), PodResourcesClient(socket) as client:
        assert await client.pods(PLACES) == PodAnswer(frozenset({"d/b"}), {})


async def test_a_kubelet_that_hangs_is_an_error_in_time(tmp_path: Path) -> None:
    made, socket = kubelet(), tmp_path / "kubelet.sock"
    made.may_answer.clear()
    async with serve(made, socket), PodResourcesClient(socket, 0.05) as client:
        with pytest.raises(PodResourcesError, match=r"kubelet\.sock: no answer in 0\.05 s"):
            await client.devices(PLACES)


async def test_a_socket_that_accepts_and_never_answers_is_an_error_in_time(tmp_path: Path) -> None:
    socket, done = tmp_path / "kubelet.sock", asyncio.Event()

    async def be_silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await done.wait()
        writer.close()

    server = await asyncio.start_unix_server(be_silent, socket)
    async with PodResourcesClient(socket, 0.05) as client:
        with pytest.raises(PodResourcesError, match="no answer"):
            await client.pods(PLACES)
    done.set()
    server.close()


async def test_the_kubelets_rate_limit_is_an_error(tmp_path: Path) -> None:
    made, socket = FakeKubelet(clock=ManualClock()), tmp_path / "kubelet.sock"
    async with serve(made, socket), PodResourcesClient(socket) as client:
        for _ in range(BURST):
            await client.devices(PLACES)
        with pytest.raises(PodResourcesError, match="RESOURCE_EXHAUSTED: rejected by rate limit"):
            await client.devices(PLACES)


@pytest.mark.parametrize("kind", ["absent", "a file", "a folder", "not served", "too long"])
async def test_a_path_that_is_no_served_socket_is_an_error(tmp_path: Path, kind: str) -> None:
    path = tmp_path / ("x" * 120 if kind == "too long" else "kubelet.sock")
    if kind == "a file":
        path.touch()
    elif kind == "a folder":
        path.mkdir()
    elif kind == "not served":
        server = await asyncio.start_unix_server(lambda *_: None, path)
        server.close()
        await server.wait_closed()
    async with PodResourcesClient(path) as client:
        with pytest.raises(PodResourcesError, match="the kubelet does not list devices on"):
            await client.devices(PLACES)


def many(count: int) -> list[pb.ContainerDevices]:
    return [pb.ContainerDevices(resource_name=GPU, device_ids=map(str, range(count)))]


HUGE: dict[str, tuple[Any, str]] = {
    "many devices": (many(MOST_DEVICES + 1), f"more than {MOST_DEVICES} devices"),
    "many empty entries": (
        [pb.ContainerDevices()] * (MOST_DEVICES + 1),
        f"more than {MOST_DEVICES} devices",
    ),
    "many bytes": (
        [pb.ContainerDevices(resource_name="x" * MOST_BYTES)],
        rf"has \d+ bytes, more than {MOST_BYTES}",
    ),
}


@pytest.mark.parametrize("name", HUGE)
async def test_an_answer_without_end_is_refused_as_a_whole(tmp_path: Path, name: str) -> None:
    socket, (devices, problem) = tmp_path / "kubelet.sock", HUGE[name]
    async with serve(kubelet(), socket) as served, PodResourcesClient(socket) as client:
        served.devices_answer = pb.AllocatableResourcesResponse(devices=devices)
        with pytest.raises(PodResourcesError, match=problem):
            await client.devices(PLACES)
        containers = [pb.ContainerResources(name="c", devices=devices)]
        pod = pb.PodResources(name="a", namespace="d", containers=containers)
        served.pods_answer = pb.ListPodResourcesResponse(pod_resources=[pod])
        with pytest.raises(PodResourcesError, match=problem):
            await client.pods(PLACES)


async def test_the_largest_answer_is_read(tmp_path: Path) -> None:
    socket = tmp_path / "kubelet.sock"
    async with serve(kubelet(), socket) as served, PodResourcesClient(socket) as client:
        served.devices_answer = pb.AllocatableResourcesResponse(devices=many(MOST_DEVICES))
        (found,) = await client.devices(PLACES)
        assert found.count == MOST_DEVICES
