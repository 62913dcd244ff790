"""Requests: renewed credentials, refusals, and servers that are something else."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from numapin_client import errors
from numapin_client.client import ApiClient, connect
from numapin_client.login.credentials import Login, TokenFile
from numapin_client.resources import NODES, PODS, Key, Resource
from numapin_client.transport.connection import Connection, Request
from numapin_client.transport.timeouts import DEFAULT_TIMEOUTS, Timeouts
from numapin_enforcer.status.node_lease import RENEW_SECONDS
from support.fakes.apiserver import FakeApiServer
from support.fakes.apiserver_answers import Answer

VERSION = Request("GET", "/version")

NODE = Key("node-1")

API_SERVER_CLOSES_SECONDS = 90
"""An idle connection (`IdleTimeout` in k8s.io/apiserver, secure_serving.go)."""


@asynccontextmanager
async def one_shot(answer: bytes) -> AsyncIterator[Login]:
    """A server that reads a request, answers with these bytes and hangs up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield Login(server=f"http://127.0.0.1:{port}", origin="a test")


async def test_a_refused_token_is_read_again_and_sent_once_more(
    server: FakeApiServer, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    server.put(NODES, {"metadata": {"name": "node-1"}})
    server.token = "old"
    login = replace(server.login, credentials=(TokenFile(path),))
    async with connect(login) as client:
        await client.get(NODES, NODE)
        server.token = "new"
        path.write_text("new")
        await client.get(NODES, NODE)
        server.token = "of another cluster"
        with pytest.raises(errors.UnauthorizedError):
            await client.get(NODES, NODE)
    sent = [request.headers["Authorization"] for request in server.requests]
    assert sent == ["Bearer old", "Bearer old", "Bearer new", "Bearer new", "Bearer new"]


async def test_connections_are_used_again(server: FakeApiServer, client: ApiClient) -> None:
    for _ in range(3):
        await client.connection.ask(VERSION)
    assert len({id(request.transport) for request in server.requests}) == 1
    assert {request.protocol for request in server.requests} != {None}


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        (400, "BadRequest", errors.BadRequestError),
        (401, "Unauthorized", errors.UnauthorizedError),
        (403, "Forbidden", errors.ForbiddenError),
        (404, "NotFound", errors.NotFoundError),
        (405, "MethodNotAllowed", errors.ApiError),
        (409, "Conflict", errors.ConflictError),
        (409, "AlreadyExists", errors.AlreadyExistsError),
        (410, "Expired", errors.GoneError),
        (410, "Gone", errors.GoneError),
        (422, "Invalid", errors.InvalidError),
        (429, "TooManyRequests", errors.TooManyRequestsError),
        (500, "InternalError", errors.UnavailableError),
        (500, "ServerTimeout", errors.ServerTimeoutError),
        (503, "ServiceUnavailable", errors.UnavailableError),
        (504, "Timeout", errors.ServerTimeoutError),
    ],
)
async def test_refusals_have_types(
    server: FakeApiServer,
    client: ApiClient,
    status: int,
    reason: str,
    expected: type[errors.ApiError],
) -> None:
    causes = [{"reason": "FieldValueInvalid", "field": "spec.x", "message": "no"}]
    body = {
        "kind": "Status",
        "reason": reason,
        "message": "because",
        "details": {"causes": causes, "retryAfterSeconds": 3},
    }
    server.answers = [Answer(status, body=json.dumps(body).encode())]
    with pytest.raises(errors.ApiError) as caught:
        await client.get(NODES, NODE)
    error = caught.value
    assert type(error) is expected
    assert str(error) == f"GET {server.url}/api/v1/nodes/node-1: {status} {reason}: because"
    assert (error.status, error.status_reason, error.message) == (status, reason, "because")
    assert error.causes == (errors.Cause("FieldValueInvalid", "spec.x", "no"),)
    assert error.retry_after_seconds == 3


@pytest.mark.parametrize(
    ("request_", "is_unknown_kind"),
    [
        ("GET https://host/apis/numapin.io/v1beta1/cpupolicies", True),
        ("GET https://host/proxy/apis/numapin.io/v1beta1/nodeassignments", True),
        ("GET https://host/apis/numapin.io/v1beta1/nodeassignments/node-1", True),
        ("GET https://host/api/v1/nodes", False),
        ("GET https://host/apis/example.com/v1/cpupolicies", False),
    ],
)
def test_an_unknown_kind_of_ours_has_a_remedy(request_: str, is_unknown_kind: bool) -> None:
    error = errors.NotFoundError(request_, 404, {"message": "404 page not found"})
    assert str(error).endswith("kubectl apply -k crds") == is_unknown_kind
    assert "404 page not found" in str(error)


def test_an_object_of_ours_that_does_not_exist_has_no_remedy() -> None:
    request = "GET https://host/apis/numapin.io/v1beta1/nodeassignments/node-1"
    error = errors.NotFoundError(request, 404, {"message": "no", "details": {"name": "node-1"}})
    assert str(error) == f"{request}: 404: no"


async def test_the_header_says_how_long_to_wait(server: FakeApiServer, client: ApiClient) -> None:
    server.answers = [Answer(503, {"Retry-After": "12"}, b"<html>the balancer is busy</html>")]
    with pytest.raises(errors.UnavailableError, match="the balancer is busy") as caught:
        await client.get(NODES, NODE)
    assert caught.value.retry_after_seconds == 12


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(200, body=b"<html>Welcome</html>"), "not JSON.*<html>Welcome"),
        (Answer(200, body=b"[]"), "not an object"),
        (Answer(200, body=b""), r"not JSON.*\(empty\)"),
        (Answer(302, {"Location": "https://login.example"}), "redirected to https://login.example"),
    ],
)
async def test_what_is_no_api_server_is_said(
    server: FakeApiServer, client: ApiClient, answer: Answer, message: str
) -> None:
    server.answers = [answer]
    with pytest.raises(errors.MalformedAnswerError, match=message) as caught:
        await client.connection.ask(VERSION)
    assert "check that the server's URL is that of a Kubernetes API server" in str(caught.value)
    assert f"GET {server.url}/version" in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", errors.MalformedAnswerError),
        (b"", errors.ConnectionFailedError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", errors.ConnectionFailedError),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"[" * 100_000,
            errors.MalformedAnswerError,
        ),
    ],
    ids=["another protocol", "hangs up", "cut in the middle", "nested too deeply"],
)
async def test_broken_connections(answer: bytes, expected: type[errors.ClientError]) -> None:
    async with one_shot(answer) as login, connect(login) as client:
        with pytest.raises(expected, match=f"GET {login.server}/version") as caught:
            await client.connection.ask(VERSION)
    assert type(caught.value) is expected


async def test_a_port_without_a_listener() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        login = Login(f"http://127.0.0.1:{bound.getsockname()[1]}", "the file ~/.kube/config")
        async with connect(login) as client:
            with pytest.raises(errors.ConnectionFailedError, match="cannot connect") as caught:
                await client.connection.ask(VERSION)
    assert "~/.kube/config names it" in str(caught.value)


async def test_an_unknown_host() -> None:
    async with connect(Login("https://no-such-host.invalid", "a test")) as client:
        with pytest.raises(errors.ConnectionFailedError, match="cannot connect"):
            await client.connection.ask(VERSION)


async def test_a_server_that_never_answers(server: FakeApiServer) -> None:
    server.answers = [Answer(stall=True)]
    async with connect(server.login, Timeouts(request_seconds=0.1)) as client:
        with pytest.raises(errors.ConnectionFailedError, match="no answer in time"):
            await client.connection.ask(VERSION)


async def test_tls_is_spoken_to_a_server_without(server: FakeApiServer) -> None:
    async with connect(Login(server.url.replace("http:", "https:"), "here")) as client:
        with pytest.raises(errors.ConnectionFailedError, match=r"TLS failed.*in here"):
            await client.connection.ask(VERSION)


@pytest.mark.parametrize(
    ("resource", "key", "message"),
    [
        (PODS, Key("", "ns"), "a Pod needs a name"),
        (PODS, Key("p"), "Pod is namespaced"),
        (NODES, Key("n", "ns"), "Node is cluster-scoped"),
    ],
)
def test_keys_that_would_name_something_else(resource: Resource, key: Key, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        resource.path(key)


def test_names_cannot_leave_their_place() -> None:
    assert PODS.path(Key("../x", "a/b")) == "/api/v1/namespaces/a%2Fb/pods/..%2Fx"


@pytest.mark.parametrize(("unused_seconds", "connections"), [(30.0, 1), (0.1, 2)])
async def test_a_connection_is_used_again_for_a_time(
    unused_seconds: float, connections: int
) -> None:
    """Otherwise each renewal of a Lease costs the API server a TLS handshake."""
    accepted = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer)
        with suppress(asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        login = Login(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", "a test")
        async with connect(login, Timeouts(unused_seconds=unused_seconds)) as client:
            for _ in range(2):
                await client.connection.ask(VERSION)
                await asyncio.sleep(0.3)
    assert len(accepted) == connections


def test_renewals_of_a_lease_share_a_connection() -> None:
    assert 2 * RENEW_SECONDS < DEFAULT_TIMEOUTS.unused_seconds < API_SERVER_CLOSES_SECONDS


async def test_the_kernel_checks_silent_peers() -> None:
    """A watch is silent for minutes; without this a dead peer would go unnoticed as long."""
    connection = Connection(Login("https://h", "a test"), Timeouts(dead_peer_seconds=30))
    address = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 1))
    with connection._socket(address) as opened:
        assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000
        idle = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
        interval = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL)
        count = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT)
        assert idle + interval * count == 30
