"""One connection to the runtime's NRI socket: registers the plug-in, and answers calls."""

import asyncio
import logging
from typing import Final

from numapin_enforcer.runtime.nri.frames import (
    PLUGIN,
    RUNTIME,
    Frame,
    FrameReader,
    Kind,
    NriProtocolError,
    encode,
)
from numapin_enforcer.runtime.nri.messages import (
    PLUGIN_SERVICE,
    UNIMPLEMENTED,
    Request,
    adjustment,
    answered,
    read_configuration,
    read_container,
    read_request,
    read_response,
    read_start,
    refused,
    registration,
    subscription,
    synchronized,
)
from numapin_enforcer.runtime.nri.values import NriError, Plugin, RuntimeTimeouts

LOG: Final = logging.getLogger(__name__)

READ_BYTES: Final = 1 << 16

REGISTER_SECONDS: Final = 10.0
"""Within this time a runtime registers the plug-in; containerd needs some 7 ms."""

MOST_CALLS: Final = 64
"""Calls that are answered at the same time. A runtime that makes more of them makes no sense: NRI
makes one after the other."""


class NriClosedError(NriError):
    """The runtime has closed the connection, as when it ends or drops the plug-in."""


class NriRefusedError(NriError):
    """The runtime does not want the plug-in."""


class Connection:
    """Serves one connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, plugin: Plugin
    ) -> None:
        self._reader, self._writer, self._plugin = reader, writer, plugin
        self._frames = FrameReader()
        self._about = RuntimeTimeouts("", "", 0.0)
        self._calls: set[asyncio.Task[None]] = set()
        self._registering = asyncio.timeout(REGISTER_SECONDS)

    async def serve(self, name: str, index: str) -> None:
        """Register, and answer until the connection ends.

        Raises:
            NriError: it ended.
            NriProtocolError: the runtime sent what it may not.
            OSError: it broke.
        """
        async with asyncio.TaskGroup() as tasks:
            error = await self._serve(name, index, tasks)
            for call in self._calls:
                call.cancel()
        raise error

    async def _serve(self, name: str, index: str, tasks: asyncio.TaskGroup) -> Exception:
        try:
            async with self._registering:
                await self._send(Frame(RUNTIME, 1, Kind.REQUEST, registration(name, index)))
                while data := await self._reader.read(READ_BYTES):
                    for frame in self._frames.feed(data):
                        self._take(frame, tasks)
        except TimeoutError:
            return NriClosedError(f"the runtime has not registered it in {REGISTER_SECONDS:g} s")
        except (NriError, NriProtocolError, OSError) as error:
            return error
        return NriClosedError("the runtime closed the connection")

    def _take(self, frame: Frame, tasks: asyncio.TaskGroup) -> None:
        if frame.connection == RUNTIME:
            if frame.kind is Kind.RESPONSE and (problem := read_response(frame.payload)):
                raise NriRefusedError(f"the runtime refused to register it: {problem}")
            return
        if frame.kind is not Kind.REQUEST:
            raise NriProtocolError("a response came, and nothing was asked")
        if len(self._calls) >= MOST_CALLS:
            raise NriProtocolError(f"more than {MOST_CALLS} calls at the same time")
        request = read_request(frame.payload)
        call = tasks.create_task(self._answer(frame.stream, request), name=request.method[:40])
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    async def _answer(self, stream: int, request: Request) -> None:
        """Answer one call, whatever becomes of it: an error would keep a container from starting.

        What cannot be read ends the connection.
        """
        try:
            response = await self._response(request)
        except NriProtocolError as error:
            LOG.warning("the runtime's NRI call cannot be read", extra={"error": error})
            self._writer.close()
            return
        except Exception:
            LOG.exception("an NRI call failed unexpectedly; the container starts as it would")
            response = answered()
        try:
            await self._send(Frame(PLUGIN, stream, Kind.RESPONSE, response))
        except OSError:
            self._writer.close()  # the reader says what it was

    async def _response(self, request: Request) -> bytes:
        payload = request.payload
        if request.service != PLUGIN_SERVICE:
            return refused(UNIMPLEMENTED, f"there is no service {request.service[:80]!r} here")
        match request.method:
            case "Configure":
                self._about = read_configuration(payload)
                return answered(subscription())
            case "Synchronize":
                return self._synchronized(payload)
            case "CreateContainer":
                return answered(adjustment(await self._plugin.create(read_container(payload))))
            case "StartContainer":
                await self._plugin.start(read_container(payload))
            case "StateChange":
                if (started := read_start(payload)) is not None:
                    await self._plugin.start(started)
            case "Shutdown":
                pass
            case _:
                return refused(UNIMPLEMENTED, f"there is no call {request.method[:80]!r} here")
        return answered()

    def _synchronized(self, payload: bytes) -> bytes:
        answer = synchronized(payload)
        if not answer:  # nothing follows
            self._registering.reschedule(None)
            self._plugin.registered(self._about)
        return answered(answer)

    async def _send(self, frame: Frame) -> None:
        self._writer.write(encode(frame))
        await self._writer.drain()
