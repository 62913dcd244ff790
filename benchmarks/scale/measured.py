"""The operator, which measures how long its event loop stands still.

    python measured.py LAGS PROFILE OPTION...

It is the operator's own `main` with one task more: that sleeps for 20 ms again and again, and each
second appends to the file LAGS how late it was woken at most, how late without the time for which
the thread was ready to run and another one had the CPU, and how long a search for reference cycles
took at most (CPU time). (The operator's probes answer in a
thread of their own, so their answers do not tell.) PROFILE is `-`, or a file for the CPU times of
cProfile; those of kopf's thread go to the same name with the suffix `.kopf`.
"""

import asyncio
import cProfile
import gc
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, NoReturn

from numapin_operator.__main__ import main
from numapin_operator.application import Application
from numapin_operator.observe import kopf_source

PAUSE_SECONDS, WRITE_SECONDS = 0.02, 1.0
DELAY = Path("/proc/thread-self/schedstat")
"""Source: Documentation/scheduler/sched-stats.rst; the second field is the time in ns for which
the thread waited for a CPU."""


def waited_seconds() -> float:
    """For how long this thread has waited for a CPU so far."""
    return int(DELAY.read_text().split()[1]) / 1e9


class Collections:
    """The longest search for reference cycles since the last `take`, in seconds of CPU time."""

    def __init__(self) -> None:
        self._began = self._longest = 0.0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, _: object) -> None:
        now = time.thread_time()
        if phase == "start":
            self._began = now
        else:
            self._longest = max(self._longest, now - self._began)

    def take(self) -> float:
        """The longest one; forgets it."""
        longest, self._longest = self._longest, 0.0
        return longest


async def measure(file: Path) -> NoReturn:
    """Append the longest delays of each second, until cancelled."""
    longest, own, collections = 0.0, 0.0, Collections()
    written = time.monotonic()
    while True:
        begun, waited = time.monotonic(), waited_seconds()
        await asyncio.sleep(PAUSE_SECONDS)
        now = time.monotonic()
        late = now - begun - PAUSE_SECONDS
        longest = max(longest, late)
        own = max(own, late - (waited_seconds() - waited))
        if now - written >= WRITE_SECONDS:
            with file.open("a") as lags:
                lags.write(f"{longest:.4f} {own:.4f} {collections.take():.4f}\n")
            longest, own, written = 0.0, 0.0, now


def add_measurement(file: Path) -> None:
    """Have the operator run `measure` beside its parts."""
    parts = Application.parts

    def with_measurement(application: Application) -> dict[str, Coroutine[Any, Any, object]]:
        return parts(application) | {"measurement": measure(file)}

    setattr(Application, "parts", with_measurement)  # noqa: B010 - mypy refuses the assignment


def profiled(file: Path) -> int:
    """Run the operator under cProfile; its exit status."""
    in_thread = kopf_source._run_in_thread  # noqa: SLF001 - there is no other way into its thread

    def run_in_thread(*arguments: Any) -> None:
        profile = cProfile.Profile(time.thread_time)
        try:
            profile.runcall(in_thread, *arguments)
        finally:
            profile.dump_stats(f"{file}.kopf")

    kopf_source._run_in_thread = run_in_thread  # type: ignore[assignment]  # noqa: SLF001
    profile = cProfile.Profile(time.thread_time)
    try:
        return profile.runcall(main, sys.argv[3:])
    finally:
        profile.dump_stats(file)


if __name__ == "__main__":
    add_measurement(Path(sys.argv[1]))
    sys.exit(main(sys.argv[3:]) if sys.argv[2] == "-" else profiled(Path(sys.argv[2])))
