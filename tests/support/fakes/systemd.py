"""A service manager that remembers what it is told; the real one passes the guest's tests."""

import asyncio
from collections.abc import Callable

from numapin_enforcer.systemd.slices import SliceSets, SystemdError


class FakeSystemd:
    """Knows the slices in `known`; fails with `failure` while that is set.

    `before_write` is run when a telling is under way, `gate` holds it back while it is not set.
    """

    def __init__(self, *slices: str) -> None:
        self.known = dict.fromkeys(slices, SliceSets())
        self.told: list[tuple[str, SliceSets]] = []
        self.reads = 0
        self.failure: SystemdError | None = None
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
        self.told.append((cgroup, sets))
        if not self.deaf:
            self.known[cgroup] = sets

    async def close(self) -> None:
        self.closed = True
