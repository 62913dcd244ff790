"""A workload that follows its CPUs: `python -m numapin_campaigns.workload.program`.

Its arguments are MILLISECONDS CGROUP FILE OTHER... It joins the cgroup CGROUP of a container, and
prints a line of JSON for each change: `[seconds of the monotonic clock, "file", text]` when it sees
its file of the downward API changed, by inotify, and `[seconds, "cpus", [...]]` when the kernel
lets it use other CPUs, which it asks every so many milliseconds.
`[seconds, "shared", [...]]` says which of them the cgroups OTHER may use as well; none at first.
It ends with SIGTERM; the last line, `[seconds, "asked", [times, seconds]]`, says how often it
asked, and how long it once did not. It shares no code with numapin.
"""

import json
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from numapin_campaigns.recording.observer import EFFECTIVE, Wakes


class Workload:
    """Prints what changes."""

    def __init__(self, milliseconds: int, file: Path, others: Sequence[Path]) -> None:
        self._milliseconds = milliseconds
        self._file, self._wakes, self._ended = file, Wakes(), False
        sets = (other / name for other in others for name in EFFECTIVE.values())
        self._others = [os.open(one, os.O_RDONLY) for one in sets if one.exists()]
        self._wakes.add(str(file.parent))  # before the first read, so that no change is missed
        self._poll = select.poll()
        self._poll.register(self._wakes.descriptor, select.POLLIN)
        self._said: dict[str, object] = {}

    def end(self, _number: int, _frame: FrameType | None) -> None:
        """End it; a handler of signals."""
        self._ended = True

    def run(self) -> None:
        """Print changes until it is ended."""
        times, longest, last = 0, 0.0, time.monotonic()
        self._look()
        while not self._ended:
            if self._poll.poll(self._milliseconds):
                self._wakes.drain()
                self._look()
            self._ask()
            now = time.monotonic()
            times, longest, last = times + 1, max(longest, now - last), now
        self._say("asked", [times, longest])

    def _ask(self) -> None:
        """Ask for its own CPUs before and after the others', so that a change shares none."""
        mine = os.sched_getaffinity(0)
        theirs = [_parse(os.pread(one, 4096, 0).decode()) for one in self._others]
        self._say("cpus", sorted(mine))
        self._say("shared", sorted(mine & set().union(*theirs) & os.sched_getaffinity(0)))

    def _look(self) -> None:
        with suppress(FileNotFoundError):  # between two states of the volume
            self._say("file", self._file.read_text())

    def _say(self, what: str, found: object) -> None:
        if self._said.get(what) != found:
            self._said[what] = found
            print(json.dumps([time.monotonic(), what, found]), flush=True)


def _parse(text: str) -> set[int]:
    """The CPUs of a kernel list, such as 2-3,6."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def main() -> None:
    """Follow the CPUs of a container until SIGTERM."""
    cgroup, file, *others = (Path(one) for one in sys.argv[2:])
    (cgroup / "cgroup.procs").write_text(f"{os.getpid()}\n")
    workload = Workload(int(sys.argv[1]), file, others)
    signal.signal(signal.SIGTERM, workload.end)
    workload.run()


if __name__ == "__main__":
    main()
