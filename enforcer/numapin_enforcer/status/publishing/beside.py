"""What an enforcer writes beside its NodeReport: the hardware, and that the old status goes."""

from collections.abc import Mapping
from typing import Any, Final

from numapin_api.forms.report import Generation
from numapin_client.errors import ClientError
from numapin_client.resources import NODE_TOPOLOGIES, Json
from numapin_daemon.clock import Clock
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_daemon.worker import Worker
from numapin_enforcer.status.publishing.target import StatusApi, Target
from numapin_enforcer.status.report import COUNT_FIELDS

AGAIN_SECONDS: Final = (1.0, 300.0)
"""How soon, and how late at most, the old status is removed again. Who writes it is not known, and
two writers must not write against each other for ever."""


class NodeTopology:
    """Writes the hardware into the NodeTopology: when it changes, and when others changed that."""

    def __init__(self, api: StatusApi, node_name: str, clock: Clock) -> None:
        self._target = Target(api, NODE_TOPOLOGIES, node_name)
        self._topology: Mapping[str, Any] | None = None
        self._worker = Worker(
            "topology",
            self._write,
            expected=(ClientError,),
            failure="the NodeTopology could not be written, it will be retried",
            clock=clock,
        )

    @property
    def problem(self) -> str:
        """Why the API server does not have the hardware yet; empty if it has, or has no object."""
        return str(self._worker.problem or "")

    def publish(self, topology: Mapping[str, Any] | None) -> None:
        """Have this hardware written, if there is an object; returns at once."""
        if topology is not self._topology:
            self._topology = topology
            self._worker.request()

    def observe(self, body: Json | None) -> None:
        """What the API server has now, as the watch saw it; None while there is no object."""
        if self._target.observe(body):
            self._worker.request()

    async def run(self) -> None:
        """Write until cancelled; a failure is retried."""
        await self._worker.run()

    async def _write(self) -> None:
        wanted = self._topology
        if wanted is None or self._target.body is None:
            return
        if patch := self._target.patch_to(wanted):
            await self._target.write(patch, wanted)


class OldStatus:
    """Removes what an enforcer wrote into the NodeAssignment, once it is in the NodeReport.

    Its `observedGeneration` says that an enforcer reports there; where it was removed the API
    server fills in 0. What the operator writes there stays.
    """

    def __init__(self, assignment: Target, report: Target, clock: Clock) -> None:
        self._assignment, self._report, self._clock = assignment, report, clock
        first, most = AGAIN_SECONDS
        self._pauses, self._due_seconds = Backoff(first, most), 0.0
        self._worker = Worker(
            "old-status",
            self._remove,
            expected=(ClientError,),
            failure="the old status could not be removed, it will be retried",
            clock=clock,
        )

    def request(self) -> None:
        """One of the objects has changed; returns at once."""
        self._worker.request()

    async def run(self) -> None:
        """Remove until cancelled; a failure is retried."""
        await self._worker.run()

    async def _remove(self) -> float | None:
        old = self._assignment.status
        if not old.get("observedGeneration") or not self._has_reported():
            return None
        if (left := self._due_seconds - self._clock.monotonic()) > 0:
            return left
        await self._assignment.write(dict.fromkeys(old.keys() - COUNT_FIELDS), {})
        self._due_seconds = self._clock.monotonic() + self._pauses.next_seconds()
        return None

    def _has_reported(self) -> bool:
        """Whether the NodeReport is about the NodeAssignment that there is."""
        observed = Generation.read(self._report.status.get("observed"))
        return observed.of(self._assignment.uid) > 0
