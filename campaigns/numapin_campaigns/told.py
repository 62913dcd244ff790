"""Does a workload see that CPUs will leave it before they do? Each of many moves is checked.

    python -m numapin_campaigns.told [--moves N] [--notice 2s] [--dir LAB] [-o FILE]

Starts a lab whose node is a virtual machine with two NUMA nodes and a real kubelet. A container is
moved back and forth between them. A process in it watches its file of the downward API with inotify
and asks the kernel each millisecond which CPUs it may use. The status is 1 unless it saw the notice
of every move before its CPU left, never shared one with a neighbour, and no write of a move was
counted as an external change. The machine is emulated, and its kubelet slower than a real one.
"""

import argparse
import json
import signal
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numapin_campaigns.frame.labs import vm_lab
from numapin_campaigns.workload.back_and_forth import BackAndForth
from numapin_campaigns.workload.notice import Followed, annotating
from numapin_lab.lifecycle import LabFolder
from numapin_lab.vm.running_lab import RunningVmLab

SHOW_EVERY = 10


def follow(lab: RunningVmLab, moves: int, notice: str) -> tuple[int, Followed]:
    """Move a container so often, or until Ctrl-C; returns how often it was, and what was seen."""
    rounds, made = BackAndForth(lab, notice), 0
    with annotating(lab):
        with rounds.followed():
            try:
                for made in range(1, moves + 1):
                    rounds.move((made - 1) % 2)
                    if made % SHOW_EVERY == 0:
                        print(f"{made} of {moves} moves", flush=True)
            except KeyboardInterrupt:
                made -= 1
        return made, rounds.result()


def figures(found: Followed, moves: int, notice: str) -> dict[str, Any]:
    """What was seen."""
    seconds = sorted(one.notice_seconds for one in found.departures)
    return {
        "moves": moves,
        "notice": notice,
        "departures": len(found.departures),
        "shared": len(found.shared),
        "told": sum(one.announced_at is not None for one in found.departures),
        "noticeSeconds": {
            "least": round(seconds[0], 3),
            "p50": round(statistics.median(seconds), 3),
            "most": round(seconds[-1], 3),
        }
        if seconds
        else {},
        "asked": found.asked,
        "longestGapSeconds": round(found.longest_gap_seconds, 3),
    }


def options(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--moves", type=int, default=100)
    parser.add_argument("--notice", default="2s", help="`dynamic.notice` (default: %(default)s)")
    parser.add_argument("--dir", type=Path, help="a folder for the lab (default: a new one)")
    parser.add_argument("-o", "--output", type=Path, help="where to write the figures as JSON")
    return parser.parse_args(arguments)


def main() -> int:
    """Run it."""
    chosen = options(sys.argv[1:])
    # A cancelled run ends as with Ctrl-C, also in the background, so that the lab is taken down.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="numapin-told-") as temporary:
        folder = LabFolder((chosen.dir or Path(temporary)).resolve(), vm=True)
        with vm_lab(folder, keep=False) as lab:
            made, found = follow(lab, chosen.moves, chosen.notice)
            assignment = lab.assignment()
            assert assignment is not None
            assert assignment.status is not None
            causes = assignment.status.drift_causes
    shown = figures(found, made, chosen.notice) | {"driftCauses": causes}
    print(json.dumps(shown, indent=1))
    if chosen.output:
        chosen.output.write_text(json.dumps(shown, indent=1) + "\n")
    told, left = int(shown["told"]), int(shown["departures"])
    return 0 if told == left >= made and not (found.shared or causes) else 1


if __name__ == "__main__":
    sys.exit(main())
