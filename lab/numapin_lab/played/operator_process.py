"""The operator as its real process, and what is seen of it from outside."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numapin_lab.processes.ports import choose
from numapin_lab.processes.usage import peak_mib, resident_mib

MEASURED = "numapin_lab.played.measured_operator"
ANSWER_SECONDS = 120.0
STOP_SECONDS = 30.0


@dataclass(frozen=True)
class Memory:
    """Memory of a process in MiB: now, its share of what it shares, and the most so far."""

    resident: float
    proportional: float
    peak: float

    @classmethod
    def of(cls, pid: int) -> "Memory":
        """The present values. Source: proc_pid_smaps_rollup(5), Pss."""
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return cls(resident_mib(pid), int(line.split()[1]) / 1024, peak_mib(pid))
        raise ProcessLookupError(f"process {pid} has ended")


@dataclass(frozen=True)
class Longest:
    """For how long the event loop stood still at most, in seconds.

    Attributes:
        late: how late something that was due was run; on a busy machine mostly because another
            program had the CPU.
        collection: CPU time of the longest search for reference cycles.
        step: CPU time of the longest step of an event loop.
        name: the coroutine or function that this step ran.
    """

    late: float = 0.0
    collection: float = 0.0
    step: float = 0.0
    name: str = "-"


class Silence:
    """Reads what `measured_operator` writes about the event loop."""

    def __init__(self, file: Path) -> None:
        self._file, self._at = file, 0
        file.unlink(missing_ok=True)
        file.touch()

    def take(self) -> Longest:
        """The longest silence since the last call."""
        with self._file.open() as file:
            file.seek(self._at)
            text = file.read()
            self._at = file.tell()
        lines = [line.split() for line in text.splitlines()]
        if not lines:
            return Longest()
        late, collection = (max(float(line[column]) for line in lines) for column in (0, 1))
        step, name = max((float(line[2]), line[3]) for line in lines)
        return Longest(late, collection, step, name)


class Spans:
    """Reads the spans that `measured_operator` writes; there are none without a file."""

    def __init__(self, file: Path | None) -> None:
        self._file, self._at = file, 0
        if file is not None:
            file.unlink(missing_ok=True)
            file.touch()

    def take(self) -> dict[str, list[float]]:
        """The seconds of each step since the last call, by its name."""
        found: dict[str, list[float]] = {}
        if self._file is not None:
            with self._file.open() as file:
                file.seek(self._at)
                text = file.read()
                self._at = file.tell()
            for line in text.splitlines():
                seconds, _, name = line.partition(" ")
                found.setdefault(name, []).append(float(seconds))
        return found


def ask(port: int, path: str) -> tuple[int, str] | None:
    """One answer of the probes, or None while nobody listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except OSError:
        return None
    finally:
        connection.close()


class OperatorRun:
    """The operator, from its start to its end."""

    def __init__(
        self,
        kubeconfig: Path,
        log: Path,
        profile: Path | None = None,
        *more: str,
        traces: bool = False,
    ) -> None:
        """Start it with `more` options.

        `profile` is a file for the figures of cProfile. `traces`: fill `spans`.
        """
        self.port, self.log = choose(1)[0], log
        self._read = log.stat().st_size if log.exists() else 0
        lags = log.with_name("loop-lags")
        self.silence = Silence(lags)
        spans = log.with_name("spans") if traces else None
        self.spans = Spans(spans)
        command = (sys.executable, "-m", MEASURED, lags, profile or "-", spans or "-")
        options = (f"--kubeconfig={kubeconfig}", f"--health-address=127.0.0.1:{self.port}")
        self.started = time.monotonic()
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [*command, *options, *more, "--log-format=json"],
                stdout=file,
                stderr=file,
                env={**os.environ, "KUBECONFIG": ""},
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def thread_seconds(self) -> list[float]:
        """CPU time of each thread so far, in the order of their starts; the second is kopf's."""
        return [_ticks(task) / os.sysconf("SC_CLK_TCK") for task in _tasks(self.pid)]

    def memory(self) -> Memory:
        """Its memory."""
        return Memory.of(self.pid)

    def leads(self) -> bool:
        """Whether it says that it is ready and leads."""
        if self.ended:
            raise ChildProcessError(f"the operator ended with {self._process.returncode}")
        answer = self.readiness()
        return answer is not None and answer[0] == http.client.OK and "leading" in answer[1]

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def readiness(self) -> tuple[int, str] | None:
        """What /readyz answers, or None while nobody listens."""
        return ask(self.port, "/readyz")

    def said(self, text: str) -> int:
        """How many lines of its log have this text."""
        return sum(line.get("text") == text for line in self.lines())

    def lines(self) -> Iterator[dict[str, Any]]:
        """The lines of its log since its start."""
        for line in self.log.read_bytes()[self._read :].splitlines():
            try:
                found = json.loads(line)
            except ValueError:  # what Python itself prints
                found = {"level": "error", "text": line.decode(errors="replace")}
            yield found

    def stop(self) -> int:
        """End it as a pod is ended; its exit status."""
        if self._process.poll() is not None:
            return self._process.returncode
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


def _tasks(pid: int) -> list[Path]:
    """The folders of a process's threads, the oldest first; none once it has ended."""
    try:
        return sorted(Path(f"/proc/{pid}/task").iterdir(), key=lambda task: int(task.name))
    except OSError:
        return []


def _ticks(task: Path) -> int:
    """CPU time of a thread. Source: proc_pid_stat(5), fields 14 and 15."""
    fields = (task / "stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
