"""How long a node keeps its assignment after its policy went, in case the policy returns."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.duration import duration_seconds
from numapin_daemon.clock import Clock
from numapin_daemon.worker import Worker
from numapin_operator.nodes.decide import NodePicture

DEFAULT_SECONDS: Final = duration_seconds(CpuPolicySpec().release_delay)
"""For a policy that this operator has not seen govern the node, such as before a restart."""


class ReleaseDelays:
    """Measures how long each node has had something to release.

    The time begins when this operator first sees it, so a restart begins it again: containers keep
    their CPUs for longer then, never for less.
    """

    def __init__(self, wake: Callable[[str], object], clock: Clock) -> None:
        """Delay nothing yet.

        Args:
            wake: called with each node whose time is over.
            clock: measures the delays.
        """
        self._wake, self._clock = wake, clock
        self._delays: dict[str, int] = {}
        self._since: dict[str, float] = {}
        self._armed: dict[str, float] = {}
        self._due: list[tuple[float, str]] = []
        self._worker = Worker("release delays", self._work, clock=clock)

    def left_seconds(self, picture: NodePicture) -> float:
        """How long the node's assignment stays although no policy wants it; 0 if it need not."""
        name, governing = picture.name, next(iter(picture.ranked), None)
        if governing is not None:
            self._remember(name, duration_seconds(governing.spec.release_delay))
        wanted = governing is not None and governing.spec.mode != "None"
        if picture.node is None or wanted or not _has_pools(picture):
            self._since.pop(name, None)
            self._armed.pop(name, None)
            if picture.node is None:
                self._delays.pop(name, None)
            return 0.0
        now = self._clock.monotonic()
        due = self._since.setdefault(name, now) + self._delays.get(name, DEFAULT_SECONDS)
        if due > now and self._armed.get(name) != due:
            self._armed[name] = due
            heappush(self._due, (due, name))
            if self._due[0] == (due, name):
                self._worker.request()
        return max(0.0, due - now)

    async def run(self) -> None:
        """Wake the nodes whose time is over, until cancelled."""
        await self._worker.run()

    def _remember(self, name: str, delay_seconds: int) -> None:
        if delay_seconds != DEFAULT_SECONDS:
            self._delays[name] = delay_seconds
        else:
            self._delays.pop(name, None)

    async def _work(self) -> float | None:
        now = self._clock.monotonic()
        while self._due and self._due[0][0] <= now:
            self._wake(heappop(self._due)[1])
        return self._due[0][0] - now if self._due else None


def _has_pools(picture: NodePicture) -> bool:
    return picture.assignment is not None and picture.assignment.spec.pools is not None
