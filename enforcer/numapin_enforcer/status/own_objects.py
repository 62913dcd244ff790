"""The objects of this node, followed for the one that writes their status."""

import asyncio

from numapin_client.client import ApiClient
from numapin_client.resources import NODE_REPORTS, NODE_TOPOLOGIES, Json
from numapin_enforcer.assignment.watch import AssignmentWatch
from numapin_enforcer.status.publisher import Publisher
from numapin_enforcer.status.publishing.object_watch import ObjectWatch


class OwnObjects:
    """Watches of the NodeAssignment, the NodeReport and the NodeTopology of this node."""

    def __init__(
        self, api: ApiClient, node_name: str, publisher: Publisher, wake: asyncio.Event
    ) -> None:
        """Args: `wake` is set when a pass must look at something new."""
        self._observe_report, self._wake = publisher.observe_report, wake
        self.assignment = AssignmentWatch(api, node_name, publisher.observe, wake)
        self._others = (
            ObjectWatch(api, NODE_REPORTS, node_name, self._note_report),
            ObjectWatch(api, NODE_TOPOLOGIES, node_name, publisher.topology.observe),
        )

    async def run(self) -> None:
        """Follow them until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for one in (self.assignment, *self._others):
                tasks.create_task(one.run())

    def _note_report(self, body: Json | None) -> None:
        if self._observe_report(body):
            self._wake.set()
