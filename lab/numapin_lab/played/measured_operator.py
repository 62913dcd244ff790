"""The operator, which measures how long its event loop stands still.

    python -m numapin_lab.played.measured_operator LAGS PROFILE SPANS OPTION...

It is the operator's own `main` with one task more: that sleeps for 20 ms again and again, and each
second appends to the file LAGS how late it was woken at most, how long a search for reference
cycles took at most (CPU time), and the step of an event loop that took the most CPU time, with its
name. A step is what a loop runs without a look at its other tasks; the operator's loop and that of
kopf's thread count. (The operator's probes answer in a thread of their own, so their answers do not
tell.) PROFILE is `-`, or a file for the CPU times of
cProfile; those of kopf's thread go to the same name with the suffix `.kopf`. SPANS is `-`, or a
file to which each span of a trace is appended: for how many seconds, and what was done.
"""

import asyncio
import cProfile
import gc
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, NoReturn

from numapin_daemon.telemetry.span import Span, SpanSink
from numapin_operator.__main__ import main
from numapin_operator.application import Application
from numapin_operator.observe.policy_source import kopf_source

PAUSE_SECONDS, WRITE_SECONDS = 0.02, 1.0


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


class Steps:
    """The step of an event loop that took the most CPU time since the last `take`."""

    def __init__(self) -> None:
        self._longest = (0.0, "-")
        run = asyncio.Handle._run  # noqa: SLF001 - each step of a loop is one call of it

        def measured(handle: asyncio.Handle) -> None:
            before = time.thread_time()
            run(handle)
            if (took := time.thread_time() - before) > self._longest[0]:
                self._longest = (took, _name(handle))

        asyncio.Handle._run = measured  # type: ignore[method-assign, assignment]  # noqa: SLF001

    def take(self) -> tuple[float, str]:
        """Its CPU time in seconds and its name, without spaces; forgets it."""
        longest, self._longest = self._longest, (0.0, "-")
        return longest


def _name(handle: asyncio.Handle) -> str:
    """The coroutine or the function that a step ran."""
    step = handle._callback  # type: ignore[attr-defined]  # noqa: SLF001
    task = getattr(step, "__self__", None)
    named = task.get_coro() if isinstance(task, asyncio.Task) else step
    return getattr(named, "__qualname__", type(named).__name__).replace(" ", "")


async def measure(file: Path) -> NoReturn:
    """Append the longest delay and the longest step of each second, until cancelled."""
    longest, collections, steps = 0.0, Collections(), Steps()
    written = time.monotonic()
    while True:
        begun = time.monotonic()
        await asyncio.sleep(PAUSE_SECONDS)
        now = time.monotonic()
        longest = max(longest, now - begun - PAUSE_SECONDS)
        if now - written >= WRITE_SECONDS:
            took, name = steps.take()
            with file.open("a") as lags:
                lags.write(f"{longest:.4f} {collections.take():.4f} {took:.4f} {name}\n")
            longest, written = 0.0, now


def add_measurement(file: Path) -> None:
    """Have the operator run `measure` beside its parts."""
    parts = Application.parts

    def with_measurement(application: Application) -> dict[str, Coroutine[Any, Any, object]]:
        return parts(application) | {"measurement": measure(file)}

    setattr(Application, "parts", with_measurement)  # noqa: B010 - mypy refuses the assignment


def add_spans(file: Path) -> None:
    """Have the operator trace the way of each pod into a file, and nowhere else."""
    trace_to = Application.trace_to
    lines = file.open("a", buffering=1)

    def append(span: Span) -> None:
        lines.write(f"{(span.end_ns - span.begin_ns) / 1e9:.6f} {span.name}\n")

    def trace_to_file(application: Application, _: SpanSink | None) -> None:
        trace_to(application, append)

    setattr(Application, "trace_to", trace_to_file)  # noqa: B010 - mypy refuses the assignment


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
        return profile.runcall(main, sys.argv[4:])
    finally:
        profile.dump_stats(file)


if __name__ == "__main__":
    add_measurement(Path(sys.argv[1]))
    if sys.argv[3] != "-":
        add_spans(Path(sys.argv[3]))
    sys.exit(main(sys.argv[4:]) if sys.argv[2] == "-" else profiled(Path(sys.argv[2])))
