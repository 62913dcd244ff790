"""The kubelet's managers as a program: built from kubelet/, asked scenario by scenario."""

import json
import os
import select
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import IO

from workload import Json

SOURCES = Path(__file__).with_name("kubelet")


class Kubelet:
    """The Go program; started anew when it does not answer in time or ends."""

    def __init__(self, program: Path, timeout_seconds: float = 600) -> None:
        self._program, self._timeout_seconds = program, timeout_seconds
        self._process = self._start()

    def ask(self, question: Json) -> Json | None:
        """Its answer, with the nanoseconds that each pod took; None if it hangs or ends."""
        asked = {key: value for key, value in question.items() if key != "machine"}
        _open(self._process.stdin).write(
            json.dumps(asked | {"topology": question["machine"]}) + "\n"
        )
        stdout = _open(self._process.stdout)
        ready, _, _ = select.select([stdout], [], [], self._timeout_seconds)
        line = stdout.readline() if ready else ""
        if line:
            return dict(json.loads(line))
        self._process.kill()
        self._process.wait()
        self._process = self._start()
        return None

    def close(self) -> None:
        """End the program."""
        _open(self._process.stdin).close()
        self._process.wait()

    def _start(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [self._program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )


def build() -> Path:
    """The Go program, built from its sources unless that was done before."""
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
