"""Cost of a local copy of all NodeAssignments: our informer and kopf, on a real API server.

    python -m numapin_benchmarks.informer.assignments [--nodes N] [--forms today,apart] [--runs N]

etcd and kube-apiserver are real, and have the objects of N nodes with 15 exclusive containers each,
in two forms (`node_objects`). Each follower is a process of its own; they alternate. It lists; then
pods are placed, two writes each, one of the operator and one of the enforcer; then another API
server takes over, which answers every watch with 410, so all is listed again.

CPU ms each: of the follower for an object that it took in. late: how long its main event loop, in
which the rest of an operator would work, stood still at most; step: the longest step of any loop in
CPU time.
"""

import argparse
import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numapin_benchmarks.informer.node_objects import FORMS, Form
from numapin_benchmarks.scale.population import put_all
from numapin_benchmarks.surroundings import load, machine, progress
from numapin_client.client import ApiClient, connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import Key
from numapin_lab.played.control_plane import LargePlane, large_plane
from numapin_lab.played.enforcers import node_name
from numapin_lab.processes.daemons import kill

FOLLOWER = "numapin_benchmarks.informer.follower"
HOW = ("informer", "kopf")
CONTAINERS = 15
SERVED_SECONDS = 10.0
COLUMNS = ("taken", "seconds", "cpu_seconds", "cpu_ms_each", "late_ms", "step_ms", "rss_mib")

Figures = dict[str, Any]


@contextmanager
def filled_plane(folder: Path, form: Form, nodes: int) -> Iterator[LargePlane]:
    """A control plane with the objects of so many nodes."""
    plane = large_plane(folder / "plane")
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    try:
        plane.start()
        for definition in form.definitions:
            plane.api.create(path, definition)
        time.sleep(SERVED_SECONDS)
        pid = plane.apiserver.pid()
        assert pid is not None
        kill(pid)
        written = put_all(plane.ports.etcd, form.in_etcd(nodes, CONTAINERS))
        plane.start()
        progress(f"{written} objects")
        yield plane
    finally:
        plane.stop()


class Follower:
    """A process that follows; `ask` has it measure the next thing."""

    def __init__(self, plane: LargePlane, form: str, how: str) -> None:
        command = [sys.executable, "-m", FOLLOWER, str(plane.kubeconfig), form, how]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    async def figures(self) -> Figures:
        """What it prints next."""
        assert self._process.stdout is not None
        found: Figures = json.loads(await asyncio.to_thread(self._process.stdout.readline))
        return found

    def begin(self) -> None:
        """Have it count from now on."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("next\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "ready\n"

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


async def place(api: ApiClient, form: Form, step: int, options: Any) -> None:
    """Write what placing pods writes: the object of the operator, then that of the enforcer."""
    begun = time.monotonic()
    for number in range(options.pods):
        node = number % options.nodes
        key = Key(node_name(node))
        for resource, one in form.objects(node, CONTAINERS, step).items():
            if "spec" in one:
                await api.merge_patch(resource, key, {"spec": one["spec"]})
            if "status" in one:
                changed = {name: part for name, part in one["status"].items() if name != "topology"}
                of_status = "status" if "spec" in one else ""
                await api.merge_patch(resource, key, {"status": changed}, subresource=of_status)
        await asyncio.sleep(max(0.0, begun + (number + 1) / options.rate - time.monotonic()))


async def one_run(plane: LargePlane, name: str, how: str, step: int, options: Any) -> Figures:
    """The figures of one follower: list, events, relist."""
    form, found = FORMS[name], dict[str, Any]()
    follower = Follower(plane, name, how)
    try:
        async with connect(kubeconfig_login(str(plane.kubeconfig))) as api:
            found["list"] = await follower.figures()
            progress(f"{name} {how} list: {found['list']}")
            follower.begin()
            await place(api, form, step, options)
            found["placed pods"] = await follower.figures()
            progress(f"{name} {how} placed pods: {found['placed pods']}")
            follower.begin()
            await asyncio.to_thread(plane.replace_apiserver)
            found["relist"] = await follower.figures()
    finally:
        follower.end()
    progress(f"{name} {how} relist: {found['relist']}")
    return found


def compare(options: Any) -> list[Figures]:
    """All forms, each with both followers in turn."""
    found: list[Figures] = []
    for name in options.forms.split(","):
        with (
            tempfile.TemporaryDirectory(prefix="numapin-follow-", dir=options.folder) as folder,
            filled_plane(Path(folder), FORMS[name], options.nodes) as plane,
        ):
            for run in range(options.runs):
                for place, how in enumerate(HOW):
                    step = 1 + run * len(HOW) + place
                    figures = asyncio.run(one_run(plane, name, how, step, options))
                    found.append({"form": name, "how": how, "load": load(), "phases": figures})
    return found


def rows(found: list[Figures]) -> Iterator[str]:
    """The lines of the table."""
    yield f"{'':34}" + "".join(f"{column:>13}" for column in COLUMNS)
    for one in found:
        for phase, figures in one["phases"].items():
            head = f"{one['form']} {one['how']} {phase}"
            yield f"{head:34}" + "".join(f"{figures[column]:>13}" for column in COLUMNS)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1000, help="how many (1000)")
    parser.add_argument("--forms", default=",".join(FORMS), help=f"of {', '.join(FORMS)} (all)")
    parser.add_argument("--pods", type=int, default=400, help="placed pods (400)")
    parser.add_argument("--rate", type=float, default=20.0, help="of these in a second (20)")
    parser.add_argument("--runs", type=int, default=1, help="of each follower (1)")
    parser.add_argument("--folder", type=Path, help="where etcd's data is")
    parser.add_argument("-o", "--output", type=Path, help="write the figures there as JSON")
    options = parser.parse_args()
    # A cancelled job ends as with Ctrl-C, so that every process is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found = compare(options)
    if options.output:
        document = {"machine": machine(), "nodes": options.nodes, "runs": found}
        options.output.write_text(json.dumps(document, indent=1) + "\n")
    print("\n".join(rows(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
