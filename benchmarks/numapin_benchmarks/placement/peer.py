"""The kubelet's managers as a Go program, built from kubelet/, that answers scenarios."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import IO, Self

from numapin_benchmarks.placement.workload import Json

SOURCES = Path(__file__).with_name("kubelet")
MEMORY = Path("/dev/shm")


class Kubelet:
    """The Go program; restarted if it ends or does not answer in time.

    Its state files are in memory and are removed with it.
    """

    def __init__(self, program: Path, timeout_seconds: float = 600) -> None:
        self._program, self._timeout_seconds = program, timeout_seconds

    def __enter__(self) -> Self:
        # A cancelled job must clean up too.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def ask(self, question: Json) -> Json | None:
        """The answer, with the nanoseconds of each pod; None if the program hangs or ends."""
        asked = {key: value for key, value in question.items() if key != "machine"}
        _open(self._process.stdin).write(
            json.dumps(asked | {"topology": question["machine"]}) + "\n"
        )
        stdout = _open(self._process.stdout)
        ready, _, _ = select.select([stdout], [], [], self._timeout_seconds)
        line = stdout.readline() if ready else ""
        if line:
            return dict(json.loads(line))
        self._end()
        self._start()
        return None

    def _start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="numapin-benchmark-", dir=MEMORY)
        self._process = subprocess.Popen(
            [self._program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={**os.environ, "TMPDIR": self._folder.name},
        )

    def _end(self) -> None:
        with self._folder, self._process:
            self._process.kill()


def build() -> Path:
    """The path of the Go program; it is built if it is not in the cache."""
    cache = os.environ.get("NUMAPIN_BENCH_CACHE", Path.home() / ".cache/numapin/benchmarks")
    digest = sha256(b"".join(file.read_bytes() for file in sorted(SOURCES.iterdir()))).hexdigest()
    program = Path(cache) / f"kubelet-{digest[:16]}"
    if not program.exists():
        print("building the kubelet's managers; the first time takes minutes", file=sys.stderr)
        program.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=program.parent) as folder:
            made = Path(folder) / "kubelet"
            subprocess.run(["go", "build", "-o", made, "."], cwd=SOURCES, check=True)
            made.rename(program)
    return program


def _open(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream
