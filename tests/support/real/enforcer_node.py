"""A node under test: a real enforcer process, its NodeAssignment, its probes."""

import asyncio
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numapin_enforcer.standby.fencing import STANDING_BY
from numapin_lab.controlplane.api import ApiServer
from numapin_lab.controlplane.node_objects import read_node
from support.real.waiting import PATIENCE_SECONDS, eventually

PATH = "/apis/numapin.io/v1beta1/nodeassignments"


def assigned(uid: str, container: str, cpus: str, **more: Any) -> dict[str, Any]:
    """An entry of spec.containers that owns its CPUs."""
    named = {"podUID": uid, "namespace": "default", "pod": f"pod-{uid[:8]}"}
    return {**named, "container": container, "cpus": cpus, "exclusive": True, **more}


def spec(
    *containers: Mapping[str, Any], shared: str = "0-1", reserved: str = "0", **more: Any
) -> dict[str, Any]:
    """A spec for the two CPUs that every machine of ours has."""
    pools = {"reserved": reserved, "shared": shared}
    policy = {"name": "test", "generation": 1}
    return {"policy": policy, "pools": pools, "containers": list(containers), **more}


@dataclass
class Node:
    """The NodeAssignment of one node, and the enforcer that acts on it."""

    name: str
    folder: Path
    api: ApiServer
    options: Mapping[str, str]
    port: int
    process: subprocess.Popen[bytes] | None = None
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def assign(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Do the operator's part: create the object, or replace its spec."""
        metadata = {"name": self.name}
        kind = {"apiVersion": "numapin.io/v1beta1", "kind": "NodeAssignment"}
        body = {**kind, "metadata": metadata, "spec": dict(spec)}
        query = "fieldManager=test-operator&force=true"
        answer: dict[str, Any] = self.api.request("PATCH", f"{PATH}/{self.name}?{query}", body)
        return answer

    @property
    def object(self) -> dict[str, Any]:
        """The NodeAssignment as v1alpha1 has it, with what the enforcer reports."""
        found = read_node(self.api, self.name)
        assert found is not None
        return found

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.object.get("status") or {}
        return found

    def reports_exclusive(self) -> bool:
        """Whether the first container in the status is reported exclusive; False without any."""
        containers = self.status.get("containers") or [{}]
        return bool(containers[0].get("exclusive"))

    def condition(self, kind: str) -> tuple[str, str, str]:
        """Status, reason and message of a condition, once it is about the newest spec."""
        found = self.object
        for one in found.get("status", {}).get("conditions", ()):
            current = one["observedGeneration"] == found["metadata"]["generation"]
            if one["type"] == kind and current:
                return one["status"], one["reason"], one["message"]
        return "", "", ""

    def notes(self, reason: str) -> list[str]:
        """What Events of that reason say about the NodeAssignment."""
        events = self.api.get("/apis/events.k8s.io/v1/namespaces/default/events")["items"]
        mine = [one for one in events if one["regarding"].get("name") == self.name]
        return [one["note"] for one in mine if one["reason"] == reason]

    def in_force(self) -> bool:
        """Whether the newest spec is in force, by the enforcer's word."""
        return self.condition("Ready")[0] == "True"

    async def applied(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Assign, wait until it is in force, and return the status that says so."""
        self.assign(spec)
        await eventually(self.in_force, "the assignment to be in force")
        return self.status

    async def start(self, within: Sequence[str] = (), **options: str) -> None:
        """Start the enforcer, and wait until it listens; options replace the usual ones.

        `within` is a command that runs the rest of its command line.
        """
        given = {**self.options, "health-address": f"127.0.0.1:{self.port}", **options}
        self.launch([f"--{name}={value}" for name, value in given.items()], within)
        await eventually(lambda: self.probe("healthz")[0] == 200 or self.ended(), "/healthz")
        assert not self.ended(), self.log

    def launch(self, arguments: Sequence[str], within: Sequence[str] = ()) -> None:
        log = (self.folder / "enforcer.log").open("ab")
        command = [*within, sys.executable, "-m", "numapin_enforcer", f"--node-name={self.name}"]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        with log:
            self.process = subprocess.Popen(
                [*command, *arguments], stdout=log, stderr=log, env=environment
            )
        self.started.append(self.process)

    async def stand_by(self, **options: str) -> subprocess.Popen[bytes]:
        """Start the standby, and wait until it stands by; options replace the enforcer's."""
        names = ("cgroup-root", "state-dir", "run-dir", "kubelet-state-dir")
        given = {**{name: self.options[name] for name in names}, **options}
        command = [sys.executable, "-m", "numapin_enforcer.standby"]
        command += [f"--node-name={self.name}", *(f"--{key}={one}" for key, one in given.items())]
        before = self.standby_log.count(STANDING_BY)
        with self._standby_log.open("ab") as log:
            process = await asyncio.to_thread(subprocess.Popen, command, stdout=log, stderr=log)
        self.started.append(process)
        await eventually(lambda: self.standby_log.count(STANDING_BY) > before, "the standby")
        return process

    @property
    def _standby_log(self) -> Path:
        return self.folder / "standby.log"

    @property
    def standby_log(self) -> str:
        return self._standby_log.read_text() if self._standby_log.exists() else ""

    def ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    async def stop(self, number: int = signal.SIGTERM) -> int:
        """End the enforcer; returns its exit status."""
        assert self.process is not None
        self.process.send_signal(number)
        return await asyncio.to_thread(self.process.wait, PATIENCE_SECONDS)

    def probe(self, page: str) -> tuple[int, str]:
        """Status and body of a probe; (0, ...) while the probe's port is closed."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{page}", timeout=30) as one:
                return one.status, one.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    @property
    def log(self) -> str:
        return (self.folder / "enforcer.log").read_text()
