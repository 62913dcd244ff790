"""Reads what `numapin status` shows from an API server; what is refused becomes a note."""

from collections.abc import Awaitable
from typing import Final, TypeVar

from numapin_api.names import GROUP
from numapin_cli.bundle.from_server import OWN
from numapin_cli.fleet.label_selector import Selector
from numapin_cli.fleet.overview import Overview
from numapin_cli.fleet.programs import Program, ProgramPod, programs
from numapin_cli.fleet.read_rows import FleetReader
from numapin_cli.live.reader import Reader
from numapin_cli.live.server import said
from numapin_client.errors import ForbiddenError
from numapin_client.resources import CPU_POLICIES, NODES, PODS, Json
from numapin_client.transport.connection import Request
from numapin_daemon.version import VERSION
from numapin_operator.observe.node_status import json_object, not_served
from numapin_operator.observe.records import PolicyView

T = TypeVar("T")

_VERSION: Final = Request("GET", "/version")
_SERVED: Final = Request("GET", f"/apis/{GROUP}")


class OverviewReader:
    """Reads overviews."""

    def __init__(self, reader: Reader, namespace: str) -> None:
        """Args: `namespace` is that of numapin."""
        self._reader, self._namespace = reader, namespace
        self._notes: list[str] = []

    async def read(self) -> Overview:
        """Read everything once.

        Raises:
            ClientError: the API server does not answer, does not serve numapin's API, or refuses
                its NodeAssignments or policies.
        """
        self._notes = []
        ask = self._reader.client.connection.ask
        version, served = await ask(_VERSION), await ask(_SERVED)
        policies = [PolicyView.decode(one.content) for one in await self._reader.all(CPU_POLICIES)]
        fleet = FleetReader(self._reader)
        rows = await fleet.rows(Selector())
        away = await self._allowed(self._reader.each(NODES, _away), [])
        own_pods = await self._allowed(self._own_pods(), None)
        return Overview(
            client=VERSION,
            kubernetes=str(version.get("gitVersion")),
            served=[str(one.get("version")) for one in served.get("versions") or ()],
            namespace=self._namespace,
            programs=own_pods,
            policies=sorted(policies, key=lambda one: one.name),
            rows=rows,
            away={name: reason for name, reason in away if reason},
            notes=[*fleet.parts.notes.values(), *self._notes],
        )

    async def _own_pods(self) -> list[Program]:
        selectors = {"namespace": self._namespace, "label_selector": OWN}
        return programs(await self._reader.each(PODS, ProgramPod.decode, **selectors))

    async def _allowed(self, read: Awaitable[T], without: T) -> T:
        """What is read; something else, and a note, if that is forbidden."""
        try:
            return await read
        except ForbiddenError as error:
            self._notes.append(f"not read: {said(error)}")
            return without


def _away(node: Json) -> tuple[str, str]:
    """The name of a Node, and why no enforcer can be expected to answer there."""
    return node["metadata"]["name"], not_served(json_object(node, "status")) or ""
