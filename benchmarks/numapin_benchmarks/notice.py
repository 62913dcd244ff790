"""Time from a changed annotation of a pod until its container sees the file changed.

    python -m numapin_benchmarks.notice [--changes N] [--busy PODS] [--dir LAB]

A real one-node Kubernetes; neither operator nor enforcer takes part. A Guaranteed pod has the
volume of docs/notice.md. Its annotation is changed at random times, and the time is measured from
when the API server has answered until the new text is read in the container's file system; inotify
wakes the reader. The operator adds 1 s to `dynamic.notice` for it.

`--busy` starts as many pods that never sleep, so that the kubelet waits for CPUs too.
"""

import argparse
import random
import select
import sys
import tempfile
import time
from pathlib import Path

from numapin_api.names import CPUS_ANNOTATION
from numapin_benchmarks.figures import HEADER, Figure, in_runs
from numapin_campaigns.recording.observer import Wakes
from numapin_campaigns.workload.notice import CPUS_FOLDER, with_cpus_file
from numapin_lab.lifecycle import LabFolder
from numapin_lab.running_lab import BUSY, RunningLab, pod

NAME = "told"
PODS = "/api/v1/namespaces/default/pods"
AGENTS = frozenset({"operator", "enforcer"})
RUNS = 5
MOST_PAUSE_SECONDS = 1.0
PATIENCE_SECONDS = 120.0


def annotate(lab: RunningLab, text: str) -> float:
    """Change the annotation; returns when the API server had answered."""
    metadata = {"name": NAME, "annotations": {CPUS_ANNOTATION: text}}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    path = f"{PODS}/{NAME}?fieldManager=benchmark&force=true"
    lab.cluster.api.request("PATCH", path, body)
    return time.monotonic()


def shown_at(file: Path, text: str, wakes: Wakes) -> float:
    """When the file first had this text; infinite if it never has."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            found = file.read_text()
        except FileNotFoundError:  # between two states of the volume
            found = ""
        if found == text:
            return time.monotonic()
        select.select([wakes.descriptor], [], [], 1)
        wakes.drain()
    return float("inf")


def measure(lab: RunningLab, changes: int, busy: int) -> Figure:
    """Change the annotation so often."""
    neighbours = [f"busy-{number}" for number in range(busy)]
    lab.apply(with_cpus_file(pod(NAME, cpu="1")), *(pod(name, BUSY) for name in neighbours))
    lab.wait_running(NAME, *neighbours)
    pid = (lab.container(NAME) / "cgroup.procs").read_text().split()[0]
    file, wakes, source = Path(f"/proc/{pid}/root{CPUS_FOLDER}/cpus"), Wakes(), random.Random(1)
    wakes.add(str(file.parent))
    took = []
    for number in range(changes):
        time.sleep(source.uniform(0, MOST_PAUSE_SECONDS))
        text = f'{{"version":1,"containers":{{}},"number":{number}}}'
        answered = annotate(lab, text)
        took.append(max(0.0, shown_at(file, text, wakes) - answered))
    return Figure(f"annotation until file, {busy} busy pods", "s", in_runs(took, RUNS))


def main() -> int:
    """Measure on a lab of its own, or in LAB."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--changes", type=int, default=60)
    parser.add_argument("--busy", type=int, default=0, metavar="PODS")
    parser.add_argument("--dir", type=Path, help="a folder for the lab (default: a new one)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="numapin-notice-") as temporary:
        folder = LabFolder((options.dir or Path(temporary)).resolve())
        try:
            figure = measure(RunningLab(folder.up(without=AGENTS)), options.changes, options.busy)
        finally:
            folder.down()
    print(f"{HEADER}\n{figure.row()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
