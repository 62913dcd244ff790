"""What an edit would change in a cluster, planned node by node while the page is looked at."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from numapin_cli.inputs.described_cluster import DescribedCluster
from numapin_cli.live.server import said
from numapin_cli.subcommand import CommandError
from numapin_cli.what_if import foresee
from numapin_client.errors import ClientError
from numapin_page.views.plan_page import changes_anything, plan_node, plan_row

Json = dict[str, Any]


class Planned:
    """The plan of a cluster as it was when it was read; the page says when that was."""

    def __init__(self, read: Callable[[], Awaitable[DescribedCluster]]) -> None:
        """Args: `read` reads the cluster with the edit applied to it."""
        self._read = read
        self._described: DescribedCluster | None = None
        self._now = 0.0
        self._planned, self._problem = 0, ""
        self._rows: list[Json] = []

    async def run(self) -> None:
        """Read, and plan each node; a failure is said in `status`."""
        self._now = time.time()
        try:
            self._described = described = await self._read()
            for node in described.nodes:
                found = await asyncio.to_thread(foresee, described.state, node, self._now)
                if changes_anything(found):
                    self._rows.append(plan_row(found))
                self._planned += 1
        except ClientError as error:
            self._problem = said(error)
        except CommandError as error:
            self._problem = str(error)

    def status(self, first: int) -> Json:
        """How far it is, and the lines of the nodes that would change from number `first` on."""
        nodes = len(self._described.nodes) if self._described else 0
        return {
            "readAt": self._now,
            "nodes": nodes,
            "planned": self._planned,
            "problem": self._problem,
            "rows": self._rows[first:],
        }

    async def node(self, name: str) -> Json:
        """One node before and after.

        Raises:
            CommandError: there is no such node, or the cluster has not been read.
        """
        described = self._described
        if described is None or name not in described.nodes:
            raise CommandError(f"node {name} is not planned")
        found = await asyncio.to_thread(foresee, described.state, name, self._now)
        return plan_node(found)
