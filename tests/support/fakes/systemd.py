"""A service manager that has what it was sent."""

import asyncio
from collections.abc import Callable

from numapin_enforcer.systemd.interface import SliceSets


class FakeSystemd:
    """Knows the slices in `known`; fails with `failure` while that is set.

    `before_write` is called during a write, which waits until `gate` is set.
    """

    def __init__(self, *slices: str) -> None:
        self.known = dict.fromkeys(slices, SliceSets())
        self.writes: list[tuple[str, SliceSets]] = []
        self.reads = 0
        self.failure: Exception | None = None
        self.deaf = False
        self.closed = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.before_write: Callable[[], None] = lambda: None

    async def read(self, cgroup: str) -> SliceSets | None:
        self.reads += 1
        if self.failure is not None:
            raise self.failure
        return self.known.get(cgroup)

    async def write(self, cgroup: str, sets: SliceSets) -> None:
        self.before_write()
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        self.writes.append((cgroup, sets))
        if not self.deaf:
            self.known[cgroup] = sets

    async def close(self) -> None:
        self.closed = True
