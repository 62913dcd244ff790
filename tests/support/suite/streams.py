"""Run all tests, in streams side by side, and print one table of their times.

    PYTHONPATH=tests python -m support.suite.streams [options of pytest]

The emulator runs in one thread, tests on a lab or an API server wait most of the time, and others
need nothing but a CPU. These come last in their stream, when other streams have ended. The first
stream prints at once, the others when all have ended. What is not in the cache is built beside
them: a test waits only for what it needs itself.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from support.suite.times import FILE, read, slow, table

ROOT = Path(__file__).parents[3]
TIMES = ROOT / ".pytest_cache" / "times.jsonl"
"""The rows of the last run; `make times` writes them into CONTRIBUTING.md."""

INTERRUPTED: Final = 130
CONTRACT: Final = ("tests/integration/contract", "tests/integration/cli")
STREAMS: Final[Mapping[str, tuple[str, ...]]] = {
    "labs": ("-m", "not vm", "tests/e2e"),
    "servers": ("-m", "not vm", "tests/integration", *(f"--ignore={one}" for one in CONTRACT)),
    "machines": ("-m", "vm", "tests/e2e", "tests/integration"),
    "rest": (*CONTRACT, "tests/unit", "tests/scenarios", "tests/conformance", "tests/support"),
}
BUILDER: Final = (sys.executable, "-m", "support.suite.components")
"""Builds everything in the order of use."""


@dataclass(frozen=True)
class Stream:
    """One pytest that runs; `output` has what it prints, None if that is seen already."""

    name: str
    process: subprocess.Popen[bytes]
    output: IO[bytes] | None

    def show(self) -> None:
        """Print its output if nobody has seen it."""
        if self.output is not None:
            self.output.seek(0)
            print(f"\n== {self.name}", flush=True)
            sys.stdout.buffer.write(self.output.read())
            sys.stdout.flush()


@contextmanager
def started(pytest: Sequence[str]) -> Iterator[list[Stream]]:
    """Start all streams. A signal ends them as it ends one pytest: with everything torn down."""
    streams: list[Stream] = []
    folder = Path(tempfile.mkdtemp(prefix="np-"))  # a short path: it holds sockets
    with ExitStack() as files:
        try:
            for name, chosen in STREAMS.items():
                output = files.enter_context(tempfile.TemporaryFile()) if streams else None
                # Pytests that share a folder for temporary files remove them from under each other.
                own = ["-o", f"cache_dir=.pytest_cache/{name}", f"--basetemp={folder / name}"]
                command = [*pytest, *own, *chosen]
                streams.append(Stream(name, _start(command, output), output))
            yield streams
        finally:
            for stream in streams:
                if stream.process.poll() is None:
                    stream.process.terminate()
            for stream in streams:
                stream.process.wait()
                stream.show()
            if any(stream.process.returncode for stream in streams):
                print(f"\n== temporary files of the tests: {folder}", flush=True)
            else:
                _remove(folder)


def _remove(folder: Path) -> None:
    """Remove temporary files, unless something is still mounted there."""
    if f" {folder}/" not in Path("/proc/self/mounts").read_text():
        shutil.rmtree(folder, ignore_errors=True)


def _start(command: Sequence[str], output: IO[bytes] | None) -> subprocess.Popen[bytes]:
    """Start a pytest. Ctrl-C in a terminal reaches this process, which passes it on once."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**kept, FILE: str(TIMES)},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT if output else None,
        process_group=0,
    )


@contextmanager
def built_beside(builder: Sequence[str]) -> Iterator[None]:
    """Run the builder until it ends, or the block does."""
    with subprocess.Popen(builder, stdin=subprocess.DEVNULL, process_group=0) as process:
        try:
            yield
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)


def wait(streams: Sequence[Stream]) -> int:
    """Say when each stream ends; returns the worst exit status."""
    began, running = time.monotonic(), list(streams)
    while running:
        time.sleep(0.1)
        for stream in [one for one in running if one.process.poll() is not None]:
            running.remove(stream)
            passed = "passed" if stream.process.returncode == 0 else "FAILED"
            minutes, seconds = divmod(int(time.monotonic() - began), 60)
            print(f"\n== {stream.name}: {passed} after {minutes}:{seconds:02}", flush=True)
    statuses: list[int] = [abs(stream.process.returncode) for stream in streams]
    return max(statuses)


def main(pytest: Sequence[str], builder: Sequence[str] = BUILDER) -> int:
    """Run everything; the exit status is not 0 if any stream's is not."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    TIMES.parent.mkdir(exist_ok=True)
    TIMES.unlink(missing_ok=True)
    try:
        with built_beside(builder), started(pytest) as streams:
            status = wait(streams)
    except KeyboardInterrupt:
        status = INTERRUPTED
    rows = read(TIMES)
    print("\n== times by area", *table(rows), *slow(rows), sep="\n", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main([sys.executable, "-m", "pytest", *sys.argv[1:]]))
