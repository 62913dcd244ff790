"""What the played enforcers have seen, read from the file to which they append."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path


class Notes:
    """The notes so far; `read` takes in what is new.

    Attributes:
        placed: when each pod first had its CPUs in a NodeAssignment, by the pod's UID.
        refused: when each pod was first refused.
        specs: when each new generation of a spec arrived, in order.
        deleted: how many NodeAssignments were deleted.
    """

    def __init__(self, file: Path) -> None:
        self._file, self._at, self._rest = file, 0, ""
        self.placed: dict[str, float] = {}
        self.refused: dict[str, float] = {}
        self.specs: list[tuple[str, float]] = []
        self.deleted = 0

    def read(self) -> None:
        """Take in the lines written since the last call."""
        with self._file.open() as file:
            file.seek(self._at)
            text = self._rest + file.read()
            self._at = file.tell()
        *lines, self._rest = text.split("\n")
        for line in lines:
            what, name, at, *outcome = line.split()
            if what == "pod":
                (self.placed if outcome == ["placed"] else self.refused)[name] = float(at)
            elif what == "spec":
                self.specs.append((name, float(at)))
            else:
                self.deleted += 1

    def decided(self, uid: str) -> float | None:
        """When a pod was placed or refused, or None."""
        return self.placed.get(uid) or self.refused.get(uid)

    async def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Read until it holds; false if it does not in time."""
        deadline = time.monotonic() + seconds
        while True:
            self.read()
            if holds():
                return True
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.2)

    async def until_quiet(self, quiet_seconds: float, seconds: float) -> None:
        """Read until no spec has changed for a while."""
        begun = time.monotonic()

        def quiet() -> bool:
            last = max(self.specs[-1][1] if self.specs else 0.0, begun)
            return time.monotonic() - last > quiet_seconds

        await self.until(quiet, seconds)
