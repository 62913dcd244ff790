"""systemd over the system's D-Bus. Imported only if the kubelet's cgroups are systemd units.

Source: org.freedesktop.systemd1(5).
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

from jeepney import (
    DBusAddress,
    HeaderFields,
    Message,
    MessageType,
    message_bus,
    new_method_call,
)
from jeepney.auth import BEGIN, AuthenticationError, Authenticator
from jeepney.io.asyncio import DBusConnection

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.systemd.interface import (
    SliceSets,
    SystemdAbsentError,
    SystemdDeniedError,
    SystemdRefusedError,
    SystemdUnavailableError,
    UnitCpus,
)
from numapin_enforcer.systemd.slices import unit_name

CALL_TIMEOUT_SECONDS: Final = 5.0
"""How long a call may take; an idle systemd answers in a millisecond."""

_NAME: Final = "org.freedesktop.systemd1"
_MANAGER: Final = DBusAddress("/org/freedesktop/systemd1", _NAME, f"{_NAME}.Manager")
_KINDS: Final = ("slice", "scope", "service", "socket", "mount", "swap")
"""Of units that have a cgroup. Source: systemd.unit(5), systemd.resource-control(5)."""
_CPUS, _MEMS, _CGROUP = "AllowedCPUs", "AllowedMemoryNodes", "ControlGroup"
_NO_SUCH_UNIT: Final = f"{_NAME}.NoSuchUnit"
_NO_NAME: Final = "org.freedesktop.DBus.Error.InvalidArgs"
_DENIED: Final = "org.freedesktop.DBus.Error.AccessDenied"
_NOT_SERVED: Final = frozenset(
    f"org.freedesktop.DBus.Error.{name}"
    for name in ("Disconnected", "NameHasNoOwner", "NoReply", "ServiceUnknown", "TimedOut")
)
"""Errors of the bus itself: systemd did not answer."""


class _RefusedError(Exception):
    """An error reply; `name` is its D-Bus name."""

    def __init__(self, reply: Message) -> None:
        self.name = reply.header.fields.get(HeaderFields.error_name, "an error without a name")
        self.message = str(reply.body[0]) if reply.body else "no message"
        super().__init__(f"{self.name}: {self.message}")


class SystemdClient:
    """The service manager behind a bus's socket; one call at a time, connected when needed."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._connection: DBusConnection | None = None

    async def read(self, cgroup: str) -> SliceSets | None:
        """The sets of a slice; see `ServiceManager`.

        systemd handles the next message only after it has written the cgroup, so an answer also
        means that the last write is done. Source: systemd src/core/manager.c,
        `manager_loop`.
        """
        try:
            (unit,) = await self._call(_MANAGER, "GetUnit", "s", (unit_name(cgroup),))
        except _RefusedError as error:
            if error.name == _NO_SUCH_UNIT:
                return None
            raise SystemdRefusedError(str(error)) from error
        path, cpus, mems = await self._properties(unit, "slice", (_CGROUP, _CPUS, _MEMS))
        if path != f"/{cgroup}":
            return None  # a unit of that name elsewhere
        return SliceSets(_cpus(cpus), MemSet.from_mask(int.from_bytes(mems, "little")))

    async def write(self, cgroup: str, sets: SliceSets) -> None:
        """Set a slice's sets; see `ServiceManager`."""
        await self._set(unit_name(cgroup), {_CPUS: sets.cpus, _MEMS: sets.mems})

    async def unit_cpus(self, unit: str) -> UnitCpus | None:
        """AllowedCPUs of a unit; see `UnitManager`."""
        kind = unit.rpartition(".")[2]
        if kind not in _KINDS:
            return None
        try:
            (loaded,) = await self._call(_MANAGER, "LoadUnit", "s", (unit,))
        except _RefusedError as error:
            if error.name == _NO_NAME:
                return None
            raise SystemdRefusedError(str(error)) from error
        path, cpus = await self._properties(loaded, kind, (_CGROUP, _CPUS))
        return UnitCpus(_cpus(cpus), str(path).removeprefix("/"))

    async def set_unit_cpus(self, unit: str, cpus: CpuSet) -> None:
        """Set AllowedCPUs; see `UnitManager`."""
        await self._set(unit, {_CPUS: cpus})

    async def _properties(self, unit: str, kind: str, names: Iterable[str]) -> list[Any]:
        """Properties of the unit with this object path."""
        interface = f"{_NAME}.{kind.capitalize()}"
        address, found = DBusAddress(unit, _NAME, "org.freedesktop.DBus.Properties"), list[Any]()
        for name in names:
            try:
                ((_, value),) = await self._call(address, "Get", "ss", (interface, name))
            except _RefusedError as error:
                raise SystemdRefusedError(str(error)) from error
            found.append(value)
        return found

    async def _set(self, unit: str, sets: Mapping[str, CpuSet | MemSet]) -> None:
        values = [(name, ("ay", _octets(ids))) for name, ids in sets.items()]
        given = (unit, True, values)  # True: until the next boot
        try:
            await self._call(_MANAGER, "SetUnitProperties", "sba(sv)", given)
        except _RefusedError as error:
            raise SystemdRefusedError(str(error)) from error

    async def close(self) -> None:
        """End the connection; the next call opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(OSError):
                await connection.close()

    async def _call(self, where: DBusAddress, method: str, signature: str, body: Any) -> Any:
        """The reply's body.

        Raises:
            SystemdUnavailableError: there is none, or there may be none.
            _RefusedError: it is an error.
        """
        message = new_method_call(where, method, signature, body)
        try:
            async with asyncio.timeout(CALL_TIMEOUT_SECONDS):
                reply = await self._ask(message)
        except FileNotFoundError as error:
            raise SystemdAbsentError(_absent(self._socket)) from error
        except PermissionError as error:
            raise SystemdDeniedError(_denied(self._socket, str(error))) from error
        except TimeoutError as error:
            await self.close()
            problem = f"{method} was not answered on {self._socket} in {CALL_TIMEOUT_SECONDS:g} s"
            raise SystemdUnavailableError(problem) from error
        except (OSError, EOFError, AuthenticationError) as error:
            await self.close()
            problem = f"no answer on {self._socket}: {error or 'it was closed'}"
            raise SystemdUnavailableError(problem) from error
        if reply.header.message_type is MessageType.error:
            refused = _RefusedError(reply)
            if refused.name in _NOT_SERVED:
                raise SystemdUnavailableError(f"no {_NAME} on {self._socket}: {refused.message}")
            if refused.name == _DENIED:
                raise SystemdDeniedError(_denied(self._socket, refused.message))
            raise refused
        return reply.body

    async def _ask(self, message: Message) -> Message:
        """The reply, which may be an error: the bus's own, if it takes no client like this one."""
        if self._connection is None:
            opened = await _open(self._socket)
            if isinstance(opened, Message):
                return opened
            self._connection = opened
        return await _exchange(self._connection, message)


def _cpus(octets: bytes) -> CpuSet:
    return CpuSet.from_mask(int.from_bytes(octets, "little"))


def _octets(ids: CpuSet | MemSet) -> bytes:
    """A set as the D-Bus property has it: bit 0 of the first octet is CPU 0."""
    return ids.mask.to_bytes((ids.mask.bit_length() + 7) // 8, "little")


async def _open(socket: Path) -> DBusConnection | Message:
    """An authenticated connection. Source: D-Bus specification, "Authentication Protocol".

    jeepney's own function leaks the socket if this fails.

    Returns:
        The bus's error instead if it takes no client like this one, as with AppArmor's profile of
        most containers. It would end the connection at the next message, without a reason.
    """
    reader, writer = await asyncio.open_unix_connection(socket)
    with ExitStack() as failing:
        failing.callback(writer.close)
        authenticator = Authenticator()
        for words in authenticator:
            writer.write(words)
            await writer.drain()
            answer = await reader.read(1024)
            if not answer:
                raise EOFError("it was closed during the authentication")
            authenticator.feed(answer)
        writer.write(BEGIN)
        connection = DBusConnection(reader, writer)
        hello = await _exchange(connection, message_bus.Hello())
        if hello.header.message_type is MessageType.error:
            return hello
        failing.pop_all()
    return connection


async def _exchange(connection: DBusConnection, message: Message) -> Message:
    """Send a call and return its reply, which may be an error."""
    serial = next(connection.outgoing_serial)
    await connection.send(message, serial=serial)
    while True:
        reply = await connection.receive()
        if reply.header.fields.get(HeaderFields.reply_serial) == serial:
            return reply


def _absent(socket: Path) -> str:
    return f"there is no {socket} (mount the host's, or name it with --systemd-socket)"


def _denied(socket: Path, reason: str) -> str:
    return f"the node denies the use of {socket} ({reason}; see docs/platforms.md)"
