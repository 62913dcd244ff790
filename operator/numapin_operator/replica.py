"""One of several operators that share the nodes: works on each shard that it holds."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Final

from numapin_daemon.probes.health import Health
from numapin_daemon.telemetry.exposition import MetricsPage
from numapin_daemon.telemetry.meter import Meter
from numapin_daemon.telemetry.metric import Values
from numapin_daemon.telemetry.process import read_process
from numapin_operator.application import Application
from numapin_operator.shards.division import Portion
from numapin_operator.shards.elector import Holding
from numapin_operator.telemetry.readings import of_all
from numapin_operator.telemetry.table import METRICS

Build = Callable[[Portion, Holding], AbstractAsyncContextManager[Application]]
"""Makes the parts of one shard, with connections that last for the context."""

NO_SHARD: Final = "standing by"


class Replica:
    """Runs an `Application` for each shard while its Lease is held, and nothing of others.

    Each has its own caches, queues and connection, so that none waits for another.

    Attributes:
        holdings: what the Lease of each shard means for it; an elector sets them.
        meter: has every metric; the sums of all shards.
    """

    def __init__(self, shards: int, build: Build) -> None:
        """Hold nothing yet.

        Args:
            shards: into how many the nodes are divided.
            build: see `Build`.
        """
        self.holdings = tuple(Holding() for _ in range(shards))
        self.meter = Meter(METRICS)
        self._build, self._held = build, dict[int, Application]()
        for source in (read_process, self._read):
            self.meter.read_from(source)

    def parts(self) -> dict[str, Coroutine[Any, Any, object]]:
        """The tasks, by name; each runs until cancelled."""
        return {
            f"shard {shard}": one.leadership.run_terms(partial(self._work, shard))
            for shard, one in enumerate(self.holdings)
        }

    def health(self) -> Health:
        """What the probes answer; an operator without a shard is ready."""
        page = MetricsPage(self.meter.collect)
        return Health(self._missing, fatal=self._fatal, role=self._role, metrics=page.text)

    async def _work(self, shard: int) -> None:
        """Work on a shard until its lead ends: list what concerns it, then decide and write."""
        holding = self.holdings[shard]
        holding.idle.clear()
        try:
            portion = Portion(shard, len(self.holdings))
            async with self._build(portion, holding) as application, asyncio.TaskGroup() as tasks:
                self._held[shard] = application
                for name, part in application.parts().items():
                    tasks.create_task(part, name=f"{name} of shard {shard}")
        finally:
            self._held.pop(shard, None)
            holding.idle.set()

    def _read(self) -> Values:
        return of_all(one.read() for one in tuple(self._held.values()))

    def _missing(self) -> dict[str, str]:
        missing = {
            f"{what} of shard {shard}": why
            for shard, one in tuple(self._held.items())
            for what, why in one.health().missing().items()
        }
        election = self.holdings[0].leadership.election
        if election is not None and not self._held:
            missing |= election.health().missing()
        return missing

    def _fatal(self) -> str:
        fatal = (one.health().fatal() for one in tuple(self._held.values()))
        election = self.holdings[0].leadership.election
        hung = election.health().fatal() if election is not None else ""
        return next(filter(None, fatal), hung and f"elections: {hung}")

    def _role(self) -> str:
        shards = [n for n, one in enumerate(self.holdings) if one.leadership.holds()]
        return f"leading shards {', '.join(map(str, shards))}" if shards else NO_SHARD
