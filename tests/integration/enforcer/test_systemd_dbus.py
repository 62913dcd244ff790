"""The edge to systemd against a real D-Bus daemon on which no systemd is; the guest has both."""

import asyncio
import errno
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest
from jeepney import Parser, message_bus, new_error
from jeepney.io.asyncio import Proxy, open_dbus_router

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.systemd import dbus as systemd_module
from numapin_enforcer.systemd.dbus import SystemdClient
from numapin_enforcer.systemd.interface import (
    SliceSets,
    SystemdAbsentError,
    SystemdDeniedError,
    SystemdUnavailableError,
)
from numapin_lab.processes.daemons import wait_until

SLICE = "kubepods.slice/kubepods-besteffort.slice"
SETS = SliceSets(CpuSet((0,)), MemSet((0,)))


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    """A path with what an address must escape."""
    folder = tmp_path / "a,b=c"
    folder.mkdir()
    return folder / "bus"


@pytest.fixture
async def client(socket: Path) -> AsyncIterator[SystemdClient]:
    made = SystemdClient(socket)
    yield made
    await made.close()


ALL = "<allow send_destination='*' eavesdrop='true'/><allow eavesdrop='true'/><allow own='*'/>"


@pytest.fixture
def bus(socket: Path, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    with _running_bus(socket, tmp_path, ALL) as process:
        yield process


def _address(socket: Path) -> str:
    escaped = str(socket).replace(",", "%2c").replace("=", "%3d")
    return f"unix:path={escaped}"


@contextmanager
def _running_bus(socket: Path, tmp_path: Path, policy: str) -> Iterator[subprocess.Popen[bytes]]:
    program = shutil.which("dbus-daemon")
    assert program is not None, "apt-get install dbus"
    configuration = tmp_path / "bus.conf"
    configuration.write_text(
        f"<busconfig><listen>{_address(socket)}</listen><policy context='default'>"
        f"{policy}</policy></busconfig>"
    )
    with subprocess.Popen([program, f"--config-file={configuration}", "--nofork"]) as process:
        try:
            wait_until(socket.exists, "the D-Bus daemon", 30)
            yield process
        finally:
            process.kill()


async def test_a_missing_socket_is_reported_with_a_remedy(client: SystemdClient) -> None:
    with pytest.raises(SystemdAbsentError, match=r"there is no .*bus .*--systemd-socket"):
        await client.read(SLICE)


async def test_a_bus_without_systemd_is_reported(
    client: SystemdClient, bus: subprocess.Popen[bytes]
) -> None:
    for _ in range(2):
        with pytest.raises(SystemdUnavailableError, match=r"no org\.freedesktop\.systemd1"):
            await client.read(SLICE)
    with pytest.raises(SystemdUnavailableError):
        await client.write(SLICE, SETS)


async def test_a_bus_that_ends_is_reported_and_the_next_is_found(
    client: SystemdClient, bus: subprocess.Popen[bytes], socket: Path
) -> None:
    with pytest.raises(SystemdUnavailableError, match=r"no org\.freedesktop\.systemd1"):
        await client.read(SLICE)
    bus.kill()
    bus.wait()
    with pytest.raises(SystemdUnavailableError, match="no answer on"):
        await client.read(SLICE)
    await asyncio.to_thread(socket.unlink)
    with pytest.raises(SystemdAbsentError):
        await client.read(SLICE)


@pytest.mark.parametrize("words", [b"", b"REJECTED\r\n", b"OK 1234\r\n", b"\0" * 40])
async def test_a_socket_that_is_not_a_bus_is_reported(
    client: SystemdClient, socket: Path, words: bytes
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(64)
        writer.write(words)
        writer.close()

    async with await asyncio.start_unix_server(answer, socket):
        with pytest.raises(SystemdUnavailableError):
            await client.read(SLICE)


async def test_a_bus_that_denies_such_clients_is_reported_with_its_reason(
    client: SystemdClient, socket: Path
) -> None:
    """As the bus does on Ubuntu to a container with AppArmor's default profile."""
    reason = "An AppArmor policy prevents this sender from sending this message"

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n")
        writer.write(b"OK 0123456789abcdef0123456789abcdef\r\n")
        await reader.readuntil(b"BEGIN\r\n")
        parser = Parser()
        while (hello := parser.get_next_message()) is None:
            parser.add_data(await reader.read(1024))
        denied = "org.freedesktop.DBus.Error.AccessDenied"
        writer.write(new_error(hello, denied, "s", (reason,)).serialise(1))
        await reader.read(1024)
        writer.close()

    async with await asyncio.start_unix_server(refuse, socket):
        for _ in range(2):
            with pytest.raises(SystemdDeniedError, match=reason):
                await client.read(SLICE)


async def test_a_bus_that_lets_no_call_through_to_systemd_is_a_denial(
    client: SystemdClient, socket: Path, tmp_path: Path
) -> None:
    """A real bus, whose policy denies what AppArmor and SELinux deny by the same error."""
    policy = f"{ALL}<deny send_destination='org.freedesktop.systemd1'/>"
    with _running_bus(socket, tmp_path, policy):
        async with open_dbus_router(bus=_address(socket)) as owner:
            await Proxy(message_bus, owner).RequestName("org.freedesktop.systemd1")
            with pytest.raises(SystemdDeniedError, match=r"denies the use of .*bus .*[Rr]ejected"):
                await client.read(SLICE)
            with pytest.raises(SystemdDeniedError, match=r"platforms\.md"):
                await client.write(SLICE, SETS)


def _deny_connections(_: object) -> NoReturn:
    raise PermissionError(errno.EACCES, "Permission denied")


async def test_a_kernel_that_denies_the_socket_is_reported(
    client: SystemdClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As SELinux does to a container whose type may not connect; root passes every mode."""
    monkeypatch.setattr(asyncio, "open_unix_connection", _deny_connections)
    with pytest.raises(SystemdDeniedError, match="Permission denied"):
        await client.read(SLICE)


async def test_a_silent_server_is_reported(
    client: SystemdClient, socket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systemd_module, "CALL_TIMEOUT_SECONDS", 0.05)
    ended = asyncio.Event()

    async def say_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()
        writer.close()

    async with await asyncio.start_unix_server(say_nothing, socket):
        with pytest.raises(SystemdUnavailableError, match="was not answered on"):
            await client.read(SLICE)
        ended.set()
