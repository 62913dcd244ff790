"""A process that plays the enforcers of all nodes: it watches NodeAssignments, and reports.

    python -m numapin_lab.played.enforcers KUBECONFIG NOTES MACHINES --nodes N --pods P

MACHINES is a JSON file of topologies. Each stand-in reports its machine once; then, for each
generation of the spec, that the pools are in force, and a moment later that the new containers run:
two writes, as a real enforcer. It reports in the node's NodeReport and NodeTopology where they
exist, else in the NodeAssignment; with --older always there, as an enforcer that does not know
these kinds. It reads specs of both forms in any case. With --end-containers it follows the pods
too, and reports that the containers of one that is gone have ended; else they run for ever. With
--only it plays the named nodes alone. With --tokens each stand-in writes with a token of its node.
With --heartbeats it also renews each node's Lease every 10 s, and its Node's status every five
minutes, as kubelets do.

It appends a line to the file NOTES for each new thing that it sees, with the time of the monotonic
clock at which the event arrived: `pod UID TIME placed|refused`, `spec NODE TIME`,
`deleted NODE TIME`.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from numapin_api.forms.report import Generation
from numapin_client.cache.informer import Informer
from numapin_client.cache.informer_settings import InformerTiming
from numapin_client.cache.store import Change
from numapin_client.client import ApiClient, Source, connect
from numapin_client.errors import ClientError, ConflictError, NotFoundError
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import (
    NODE_ASSIGNMENTS,
    NODE_REPORTS,
    NODE_TOPOLOGIES,
    PODS,
    Json,
    Key,
    Resource,
)
from numapin_lab.played.heartbeats import beat
from numapin_lab.played.machines import reported
from numapin_lab.played.node_logins import as_nodes, writes_as
from numapin_lab.played.reports import CLEARED, report_of, slim, status_of

PROGRAM = "numapin_lab.played.enforcers"
WRITERS = 24
START_SECONDS = 0.5
"""From CPUs in force to a running container, as the kubelet of a quick node."""

AGAIN_SECONDS = 1.0
SOON = InformerTiming(backoff_cap_seconds=2.0)
"""After an outage the operator is measured, and not how long its enforcers wait."""

SPACE = uuid.UUID("6f3a2c7e-5f43-4c55-9c6b-6a0b3f2f7d11")


def node_name(number: int) -> str:
    """The name of node `number`."""
    return f"node-{number:05d}"


def uid_of(name: str) -> str:
    """The UID of an object that is there from the start."""
    return str(uuid.uuid5(SPACE, name))


def pod_uid(node: str, number: int) -> str:
    """The UID of a pod that is on a node from the start, known here without a watch."""
    return uid_of(f"{node}/{number}")


class Enforcers:
    """All stand-ins; `specs` is the newest object of each node without its status."""

    def __init__(self, api: ApiClient, pods: int, machines: Sequence[Json], notes: TextIO) -> None:
        self._api, self._pods, self._machines, self._notes = api, pods, machines, notes
        self.only: frozenset[str] = frozenset()
        self.own_logins = False
        self._apart: set[str] = set()
        self._enforced: dict[str, Generation] = {}
        self._seen: set[str] = set()
        self._latest: dict[str, Json] = {}
        self._told_apart: dict[str, bool] = {}
        """Of the nodes whose hardware is reported: whether that is in a NodeTopology."""
        self._running: dict[str, set[str]] = {}
        self._in_force: dict[str, list[Json]] = {}
        self._gone: set[str] = set()
        self._waiting: asyncio.Queue[str] = asyncio.Queue()
        self._queued: set[str] = set()

    def note(self, changes: Sequence[Change[Json]]) -> None:
        """Write down what is new, and have the changed nodes reported."""
        now = time.monotonic()
        for change in changes:
            name = change.key.name
            if self.only and name not in self.only:
                continue
            if change.new is None:
                self._notes.write(f"deleted {name} {now}\n")
                self._latest.pop(name, None)
                self._told_apart.pop(name, None)
                continue
            before = change.old or {}
            self._latest[name] = change.new
            if before.get("uid") != change.new["uid"]:
                self._told_apart.pop(name, None)
            self._note_pods(change.new["spec"], now)
            if (before.get("uid"), before.get("generation")) != _version(change.new):
                self._notes.write(f"spec {name} {now}\n")
                self._want(name)
            elif change.new["hasStatus"] and name in self._apart:
                self._want(name)  # it was written before the report was there
        self._notes.flush()

    def note_reports(self, changes: Sequence[Change[str]]) -> None:
        """Report again where a NodeReport was created, in it, and elsewhere if it was deleted."""
        for change in changes:
            name = change.key.name
            if change.new is None:
                self._apart.discard(name)
            else:
                self._apart.add(name)
            self._told_apart.pop(name, None)
            if name in self._latest:
                self._want(name)

    def end(self, changes: Sequence[Change[tuple[str, str]]]) -> None:
        """Have the containers of pods that are gone reported as ended."""
        for change in changes:
            if change.old is not None and change.old != change.new:
                uid, node = change.old
                self._gone.add(uid)
                if node in self._latest:
                    self._want(node)

    def _note_pods(self, spec: Json, now: float) -> None:
        for field, outcome in (("containers", "placed"), ("refused", "refused")):
            for one in spec.get(field) or ():
                if one["podUID"] not in self._seen:
                    self._seen.add(one["podUID"])
                    self._notes.write(f"pod {one['podUID']} {now} {outcome}\n")

    def _want(self, name: str) -> None:
        if name not in self._queued:
            self._queued.add(name)
            self._waiting.put_nowait(name)

    async def write(self) -> None:
        """Report one node after the other, until cancelled."""
        while True:
            name = await self._waiting.get()
            self._queued.discard(name)
            if self.own_logins:
                writes_as.set(name)
            try:
                await self._report(name)
            except (NotFoundError, ConflictError):
                continue
            except ClientError:
                await asyncio.sleep(AGAIN_SECONDS)
                self._want(name)

    async def _report(self, name: str) -> None:
        latest = self._latest.get(name)
        if latest is None:
            return
        spec = latest["spec"]
        listed = spec.get("containers") if "pools" in spec else self._in_force.get(name)
        wanted = {one["podUID"] for one in listed or ()} - self._gone
        running = self._running.setdefault(name, set())
        starts = wanted != running
        # A report that says no more than that containers do not run yet waits for them.
        waits = starts and wanted >= running and name in self._apart and name in self._told_apart
        if not waits:
            await self._patch(name, latest, wanted & running)
        if starts:
            self._running[name] = wanted
            asyncio.get_running_loop().call_later(START_SECONDS, self._want, name)

    async def _patch(self, name: str, latest: Json, running: set[str]) -> None:
        started = {pod_uid(name, one) for one in range(self._pods)}
        status = status_of(latest, running, started)
        if "pools" in latest["spec"]:
            self._in_force[name] = status["containers"]
            self._enforced[name] = Generation(*_version(latest))
        else:  # the object is new, the containers are not: their cpusets stay until it is planned
            kept = self._in_force.get(name, ())
            status["containers"] = [one for one in kept if one["podUID"] in running]
        machine = reported(self._machines, int(name.rpartition("-")[2]))
        is_apart = name in self._apart
        is_told = self._told_apart.get(name) is is_apart
        if is_apart:
            report = report_of(latest, status, self._enforced.get(name, Generation()))
            await self._write(NODE_REPORTS, name, report)
            if latest["hasStatus"]:
                await self._write(NODE_ASSIGNMENTS, name, CLEARED)
            if not is_told and not await self._write_topology(name, machine):
                return
        else:
            hardware = {} if is_told else {"topology": machine}
            await self._write(NODE_ASSIGNMENTS, name, status | hardware)
        self._told_apart[name] = is_apart

    async def _write_topology(self, name: str, machine: Json) -> bool:
        """Whether there is a NodeTopology; else it is tried again."""
        try:
            await self._write(NODE_TOPOLOGIES, name, machine)
        except NotFoundError:
            asyncio.get_running_loop().call_later(AGAIN_SECONDS, self._want, name)
            return False
        return True

    async def _write(self, resource: Resource, name: str, status: Json) -> None:
        await self._api.merge_patch(resource, Key(name), {"status": status}, subresource="status")


def uid_and_node(pod: Json) -> tuple[str, str]:
    """What a stand-in keeps of a pod."""
    return pod["metadata"]["uid"], pod["spec"].get("nodeName", "")


def _uid(report: Json) -> str:
    """What a stand-in keeps of a NodeReport."""
    return str(report["metadata"]["uid"])


def _version(slimmed: Json) -> tuple[str, int]:
    return slimmed["uid"], slimmed["generation"]


@contextmanager
def played(kubeconfig: Path, notes: Path, machines: Sequence[Json], *options: str) -> Iterator[int]:
    """Run this program as a process of its own; yields its pid."""
    file = notes.with_name("machines.json")
    file.write_text(json.dumps(machines))
    notes.touch()
    with notes.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, kubeconfig, notes, file, *options],
            stdout=log,
            stderr=log,
            env={**os.environ, "KUBECONFIG": ""},
        )
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


async def play(options: argparse.Namespace) -> None:
    """Play until killed."""
    login = as_nodes(kubeconfig_login(str(options.kubeconfig)), options.tokens)
    machines = json.loads(options.machines.read_text())
    with options.notes.open("a") as notes:
        async with connect(login) as api, asyncio.TaskGroup() as tasks:
            enforcers = Enforcers(api, options.pods, machines, notes)
            enforcers.only, enforcers.own_logins = frozenset(options.only), bool(options.tokens)
            source = Source(NODE_ASSIGNMENTS)
            informer = Informer(api, source, slim, enforcers.note, SOON)
            tasks.create_task(informer.run(), name="assignments")
            if not options.older:
                reports = Informer(api, Source(NODE_REPORTS), _uid, enforcers.note_reports, SOON)
                tasks.create_task(reports.run(), name="reports")
            for number in range(WRITERS):
                tasks.create_task(enforcers.write(), name=f"writer {number}")
            if options.end_containers:
                pods = Informer(api, Source(PODS), uid_and_node, enforcers.end, SOON)
                tasks.create_task(pods.run(), name="pods")
            if options.heartbeats:
                names = [node_name(number) for number in range(options.nodes)]
                tasks.create_task(beat(api, names), name="heartbeats")


def main() -> None:
    """Read the command line and play."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("notes", type=Path)
    parser.add_argument("machines", type=Path)
    parser.add_argument("--nodes", type=int, default=0)
    parser.add_argument("--pods", type=int, default=0)
    parser.add_argument("--older", action="store_true")
    parser.add_argument("--end-containers", action="store_true")
    parser.add_argument("--heartbeats", action="store_true")
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--tokens", type=Path)
    with suppress(KeyboardInterrupt):
        asyncio.run(play(parser.parse_args()))


if __name__ == "__main__":
    main()
