"""HTTPS_PROXY and NO_PROXY, read as kubectl reads them."""

import asyncio
from pathlib import Path

import pytest

from numapin_client.client import connect
from numapin_client.errors import LoginError
from numapin_client.login.find import find_login
from numapin_client.login.proxies import proxy_for
from numapin_client.transport.connection import Request

VERSION = Request("GET", "/version")

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "no_proxy", "spared"),
    [
        ("https://10.96.0.1:443", "", False),
        ("https://10.96.0.1:443", "10.96.0.0/12", True),
        ("https://10.112.0.1:443", "10.96.0.0/12", False),
        ("https://10.96.0.1:443", "10.96.0.1", True),
        ("https://10.96.0.1:443", "10.96.0.1:443", True),
        ("https://10.96.0.1:443", "10.96.0.1:6443", False),
        ("https://10.96.0.1:443", "nonsense/12,, 10.96.0.1 ", True),
        ("https://[fd00::1]:443", "fd00::/8", True),
        ("https://[fd00::1]:443", "fd00::1", True),
        ("https://[fd00::1]:443", "[fd00::1]:443", True),
        ("https://[fd00::1]:443", "[fd00::2]", False),
        ("https://api.example.com", "example.com", True),
        ("https://example.com", "example.com", True),
        ("https://myexample.com", "example.com", False),
        ("https://api.example.com", ".example.com", True),
        ("https://example.com", ".example.com", False),
        ("https://api.example.com", "*.example.com", True),
        ("https://api.example.com", "EXAMPLE.com:443", True),
        ("https://api.example.com", "example.com:6443", False),
        ("https://api.example.com", "*", True),
        ("https://api.example.com", "10.0.0.0/8", False),
        ("https://127.0.0.1:6443", "", True),
        ("https://[::1]:6443", "", True),
        ("https://localhost:6443", "", True),
    ],
)
def test_whom_no_proxy_spares(server: str, no_proxy: str, spared: bool) -> None:
    environ = {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy}
    assert proxy_for(server, environ) == (None if spared else PROXY)


@pytest.mark.parametrize(
    ("environ", "proxy"),
    [
        ({}, None),
        ({"HTTPS_PROXY": ""}, None),
        ({"https_proxy": PROXY}, PROXY),
        ({"HTTPS_PROXY": PROXY, "https_proxy": "http://other"}, PROXY),
        ({"HTTPS_PROXY": "proxy:3128"}, PROXY),
        ({"HTTP_PROXY": PROXY}, None),
        ({"https_proxy": PROXY, "no_proxy": "10.0.0.0/8"}, None),
    ],
)
def test_the_variable_of_the_servers_scheme_counts(
    environ: dict[str, str], proxy: str | None
) -> None:
    assert proxy_for("https://10.96.0.1", environ) == proxy


def test_a_proxy_that_is_none_is_refused() -> None:
    with pytest.raises(LoginError, match=r"HTTPS_PROXY is 'socks5://p'; only HTTP proxies"):
        proxy_for("https://10.96.0.1", {"HTTPS_PROXY": "socks5://p"})


def kubeconfig(folder: Path, server: str, more: str = "") -> str:
    (folder / "config").write_text(
        "{current-context: c, contexts: [{name: c, context: {cluster: c}}],"
        f" clusters: [{{name: c, cluster: {{server: '{server}'{more}}}}}]}}"
    )
    return str(folder / "config")


def test_a_kubeconfig_that_names_a_proxy_wins(tmp_path: Path) -> None:
    environ = {"HTTPS_PROXY": PROXY}
    plain = kubeconfig(tmp_path, "https://api.example.com")
    assert find_login(plain, environ).proxy == PROXY
    named = kubeconfig(tmp_path, "https://api.example.com", ", proxy-url: 'http://named:1'")
    assert find_login(named, environ).proxy == "http://named:1"


async def test_requests_go_through_the_proxy(tmp_path: Path) -> None:
    """The server's name is known to the proxy alone."""
    asked: list[str] = []

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readline()).decode().split()[1])
        while (await reader.readline()).strip():
            pass
        body = b'{"major": "1", "minor": "36", "gitVersion": "v1.36.3"}'
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    proxy = await asyncio.start_server(forward, "127.0.0.1", 0)
    port = proxy.sockets[0].getsockname()[1]
    environ = {"HTTP_PROXY": f"127.0.0.1:{port}"}
    login = find_login(kubeconfig(tmp_path, "http://nowhere.invalid:8080"), environ)
    async with proxy, connect(login) as client:
        await client.connection.ask(VERSION)
    assert asked == ["http://nowhere.invalid:8080/version"]
