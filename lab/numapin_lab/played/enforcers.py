"""A process that plays the enforcers of all nodes: it watches NodeAssignments, and reports.

    python -m numapin_lab.played.enforcers KUBECONFIG NOTES MACHINES --nodes N --pods P

MACHINES is a JSON file of topologies. Each stand-in reports its machine once; then, for each
generation of the spec, that the pools are in force, and a moment later that the new containers run:
two writes, as a real enforcer. With --reports it writes NodeReports and NodeTopologies; a report
that only says that containers do not run yet waits for them, as that of a real one. With
--end-containers it follows the pods too, and reports that the containers of one that is gone have
ended; else they run for ever. With --only it plays the named nodes alone. With --tokens each
stand-in writes with a token of its node. With --heartbeats it also renews each node's Lease every
10 s, and its Node's status every five minutes, as kubelets do.

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

from numapin_api.forms.spec import read_spec
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
from numapin_lab.played.reports import report_of, status_of

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
        self.own_logins = self.reports = False
        self._seen: set[str] = set()
        self._latest: dict[str, Json] = {}
        self._known: set[str] = set()
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
                self._known.discard(name)
                continue
            before = change.old or {}
            self._latest[name] = change.new
            if before.get("uid") != change.new["uid"]:
                self._known.discard(name)
            if (before.get("uid"), before.get("generation")) != _version(change.new):
                self._note_spec(name, change.new["spec"], now)
                self._want(name)
        self._notes.flush()

    def end(self, changes: Sequence[Change[tuple[str, str]]]) -> None:
        """Have the containers of pods that are gone reported as ended."""
        for change in changes:
            if change.old is not None and change.old != change.new:
                uid, node = change.old
                self._gone.add(uid)
                if node in self._latest:
                    self._want(node)

    def _note_spec(self, name: str, spec: Json, now: float) -> None:
        self._notes.write(f"spec {name} {now}\n")
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
                if self.reports and name in self._latest:  # the operator makes them after it
                    asyncio.get_running_loop().call_later(AGAIN_SECONDS, self._want, name)
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
        if not (self.reports and starts and wanted >= running and name in self._known):
            await self._patch(name, latest, wanted & running)
        if starts:
            self._running[name] = wanted
            asyncio.get_running_loop().call_later(START_SECONDS, self._want, name)

    async def _patch(self, name: str, latest: Json, running: set[str]) -> None:
        if self.reports:
            await self._write_report(name, latest, running)
            return
        others = (pod_uid(name, one) for one in range(self._pods))
        status = status_of(latest, running, others)
        if "pools" in latest["spec"]:
            self._in_force[name] = status["containers"]
        else:  # the object is new, the containers are not: their cpusets stay until it is planned
            kept = self._in_force.get(name, ())
            status["containers"] = [one for one in kept if one["podUID"] in running]
        if name not in self._known:
            status["topology"] = reported(self._machines, int(name.rpartition("-")[2]))
        await self._put(NODE_ASSIGNMENTS, name, status)
        self._known.add(name)

    async def _write_report(self, name: str, latest: Json, running: set[str]) -> None:
        """Report in the objects that the operator has made for it."""
        if name not in self._known:
            machine = reported(self._machines, int(name.rpartition("-")[2]))
            await self._put(NODE_TOPOLOGIES, name, machine)
        await self._put(NODE_REPORTS, name, report_of(latest, running))
        self._known.add(name)

    async def _put(self, kind: Resource, name: str, status: Json) -> None:
        await self._api.merge_patch(kind, Key(name), {"status": status}, subresource="status")


def uid_and_node(pod: Json) -> tuple[str, str]:
    """What a stand-in keeps of a pod."""
    return pod["metadata"]["uid"], pod["spec"].get("nodeName", "")


def slim(body: Json) -> Json:
    """What a stand-in keeps of a NodeAssignment, its spec as v1alpha1 has it."""
    metadata = body["metadata"]
    spec = read_spec(body).wire
    return {"uid": metadata["uid"], "generation": metadata["generation"], "spec": spec}


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
            enforcers.reports = options.reports
            source = Source(NODE_ASSIGNMENTS)
            informer = Informer(api, source, slim, enforcers.note, SOON)
            tasks.create_task(informer.run(), name="assignments")
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
    parser.add_argument("--end-containers", action="store_true")
    parser.add_argument("--heartbeats", action="store_true")
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--reports", action="store_true")
    parser.add_argument("--tokens", type=Path)
    with suppress(KeyboardInterrupt):
        asyncio.run(play(parser.parse_args()))


if __name__ == "__main__":
    main()
