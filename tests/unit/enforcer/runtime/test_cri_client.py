"""CriClient against a real gRPC server of ours that hangs, refuses, or is too old."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError
from grpclib.server import Server, Stream

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.runtime.cri_client import CriClient, find_socket
from numapin_enforcer.runtime.generated import cri_v1_pb2 as pb
from numapin_enforcer.runtime.interface import (
    ContainerResources,
    ContainerState,
    CriNotFoundError,
    CriRefusedError,
    CriUnavailableError,
    CriUnsupportedError,
    RuntimeContainer,
)

SERVICE = "/runtime.v1.RuntimeService"


class Runtime:
    """Answers what the test says; everything else is not implemented, as in an old runtime."""

    def __init__(self) -> None:
        self.updates: list[pb.UpdateContainerResourcesRequest] = []
        self.refusal: GRPCError | None = None
        self.hang = False
        self.at_once = self.most_at_once = 0

    async def list_containers(
        self, stream: Stream[pb.ListContainersRequest, pb.ListContainersResponse]
    ) -> None:
        request = await stream.recv_message()
        assert request is not None
        self.at_once += not request.filter.id
        self.most_at_once = max(self.most_at_once, self.at_once)
        if self.hang:
            await asyncio.sleep(60)
        known = [
            pb.Container(id=one, metadata=pb.ContainerMetadata(name=f"n-{one}")) for one in "ab"
        ]
        found = [one for one in known if request.filter.id in {"", one.id}]
        await asyncio.sleep(0)
        self.at_once -= not request.filter.id
        await stream.send_message(pb.ListContainersResponse(containers=found))

    async def update(
        self,
        stream: Stream[pb.UpdateContainerResourcesRequest, pb.UpdateContainerResourcesResponse],
    ) -> None:
        request = await stream.recv_message()
        if self.refusal is not None:
            raise self.refusal
        self.updates.append(cast("pb.UpdateContainerResourcesRequest", request))
        await stream.send_message(pb.UpdateContainerResourcesResponse())

    def __mapping__(self) -> dict[str, Handler]:
        unary = Cardinality.UNARY_UNARY
        lists = (pb.ListContainersRequest, pb.ListContainersResponse)
        updates = (pb.UpdateContainerResourcesRequest, pb.UpdateContainerResourcesResponse)
        return {
            f"{SERVICE}/ListContainers": Handler(self.list_containers, unary, *lists),
            f"{SERVICE}/UpdateContainerResources": Handler(self.update, unary, *updates),
        }


class NewRuntime(Runtime):
    """Has events as well: sends one, then ends the stream."""

    async def events(self, stream: Stream[pb.GetEventsRequest, pb.ContainerEventResponse]) -> None:
        await stream.recv_message()
        status = pb.ContainerStatus(
            id="a", metadata=pb.ContainerMetadata(name="main"), state=pb.CONTAINER_EXITED
        )
        await stream.send_message(
            pb.ContainerEventResponse(
                container_id="a",
                container_event_type=pb.CONTAINER_STOPPED_EVENT,
                containers_statuses=[status],
            )
        )

    def __mapping__(self) -> dict[str, Handler]:
        stream = Cardinality.UNARY_STREAM
        types = (pb.GetEventsRequest, pb.ContainerEventResponse)
        added = {f"{SERVICE}/GetContainerEvents": Handler(self.events, stream, *types)}
        return super().__mapping__() | added


@pytest.fixture
def runtime() -> Runtime:
    return NewRuntime()


@pytest.fixture
async def client(runtime: Runtime, tmp_path: Path) -> AsyncIterator[CriClient]:
    server = Server([runtime])
    await server.start(path=str(tmp_path / "cri.sock"))
    async with CriClient(tmp_path / "cri.sock") as made:
        yield made
    server.close()
    await server.wait_closed()


async def test_containers_are_listed_by_name(client: CriClient) -> None:
    second = RuntimeContainer("b", "n-b", ContainerState.CREATED)
    assert await client.containers() == (
        RuntimeContainer("a", "n-a", ContainerState.CREATED),
        second,
    )
    assert await client.containers("b") == (second,)


async def test_an_update_has_both_sets_and_the_quota(client: CriClient, runtime: Runtime) -> None:
    record = ContainerResources(CpuSet.parse("2-3,8"), MemSet.parse("1"), quota_us=-1)
    await client.update_resources("a", record)
    (sent,) = runtime.updates
    assert (sent.container_id, sent.linux.cpuset_cpus, sent.linux.cpuset_mems) == (
        "a",
        "2-3,8",
        "1",
    )
    assert sent.linux.cpu_quota == -1


async def test_an_update_without_a_quota_leaves_it(client: CriClient, runtime: Runtime) -> None:
    await client.update_resources("a", ContainerResources(CpuSet.parse("1")))
    assert runtime.updates[0].linux.cpu_quota == 0


async def test_a_refusal_says_what_the_runtime_said(client: CriClient, runtime: Runtime) -> None:
    runtime.refusal = GRPCError(Status.UNKNOWN, 'failed to write "0-7": out of range')
    with pytest.raises(CriRefusedError, match="UNKNOWN: failed to write"):
        await client.update_resources("a", ContainerResources(CpuSet.parse("0-7")))


async def test_a_container_that_is_gone(client: CriClient, runtime: Runtime) -> None:
    runtime.refusal = GRPCError(Status.NOT_FOUND, "failed to find container")
    with pytest.raises(CriNotFoundError, match="failed to find container"):
        await client.update_resources("a", ContainerResources(CpuSet.parse("1")))


async def test_a_runtime_that_hangs_is_unavailable(
    client: CriClient, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime.hang = True
    with monkeypatch.context() as impatient:
        impatient.setattr(client, "_timeout_seconds", 0.3)
        with pytest.raises(CriUnavailableError, match=r"cri\.sock: no answer in 0\.3 s") as caught:
            await client.containers()
    assert caught.value.reason == "RuntimeUnavailable"
    runtime.hang = False
    assert len(await client.containers()) == 2


async def test_a_call_the_runtime_does_not_know(client: CriClient, runtime: Runtime) -> None:
    runtime.refusal = GRPCError(Status.UNIMPLEMENTED, "unknown method UpdateContainerResources")
    with pytest.raises(CriUnsupportedError, match="unknown method"):
        await client.update_resources("a", ContainerResources(CpuSet.parse("1")))


async def test_events_end_with_the_stream(client: CriClient) -> None:
    container = RuntimeContainer("a", "main", ContainerState.EXITED)
    seen = [containers async for containers in client.events()]
    assert seen == [(container,)]


async def test_a_socket_without_a_server(tmp_path: Path) -> None:
    async with CriClient(tmp_path / "none.sock") as client:
        with pytest.raises(CriUnavailableError, match=r"No such file.*--cri-socket"):
            await client.version()


async def test_a_socket_of_another_server(tmp_path: Path) -> None:
    path = tmp_path / "other.sock"

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        writer.close()

    server = await asyncio.start_unix_server(hang_up, path)
    async with CriClient(path, call_timeout_seconds=2) as client:
        with pytest.raises(CriUnavailableError):
            await client.version()
    server.close()


async def test_the_first_socket_that_exists_is_used_else_the_first(tmp_path: Path) -> None:
    assert find_socket((tmp_path / "a", tmp_path / "b")) == tmp_path / "a"
    server = await asyncio.start_unix_server(lambda *_: None, tmp_path / "b")
    (tmp_path / "a").touch()
    assert find_socket((tmp_path / "a", tmp_path / "b")) == tmp_path / "b"
    server.close()


async def test_all_containers_are_listed_once_at_a_time(
    client: CriClient, runtime: Runtime
) -> None:
    """Two answers of 16 MiB would take half of the memory that the enforcer may use."""
    lists = await asyncio.gather(*(client.containers() for _ in range(3)), client.containers("a"))
    assert [len(found) for found in lists] == [2, 2, 2, 1]
    assert runtime.most_at_once == 1


async def test_a_list_that_fails_lets_the_next_one_be_asked_for(
    runtime: Runtime, client: CriClient
) -> None:
    client._timeout_seconds, runtime.hang = 0.01, True
    with pytest.raises(CriUnavailableError):
        await client.containers()
    client._timeout_seconds, runtime.hang = 5, False
    assert len(await client.containers()) == 2


async def test_a_deleted_folder_of_the_socket_needs_a_restart(tmp_path: Path) -> None:
    """As a container sees it that has mounted the folder: this process keeps it open."""
    folder = tmp_path / "containerd"
    folder.mkdir()
    kept = os.open(folder, os.O_PATH)
    seen = Path(f"/proc/self/fd/{kept}")
    async with CriClient(seen / "cri.sock") as client:
        with pytest.raises(CriUnavailableError, match="start it") as down:
            await client.version()
        folder.rmdir()
        folder.mkdir()
        with pytest.raises(CriUnavailableError, match="only a restart of this program") as gone:
            await client.version()
    os.close(kept)
    assert (down.value.is_outdated, gone.value.is_outdated) == (False, True)
