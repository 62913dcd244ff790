"""Scenarios of one node, written as data: see README.md."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from numapin_api.hardware.machine_file import parse_machine
from numapin_api.quantity import millis
from numapin_api.topology import DeviceName, PciDevice, Topology
from numapin_client.resources import Key
from numapin_operator.nodes.controller import Controller
from numapin_operator.nodes.events.refusal_events import RefusalEvents
from numapin_operator.nodes.eviction.evictor import Evictor
from numapin_operator.nodes.outputs import Outputs
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.observe.records import NodeView
from numapin_operator.observe.stores.versioned_cache import Listed
from numapin_operator.placement import SystemReservation
from numapin_operator.policies.status_writer import StatusWriter
from numapin_operator.queues.workqueue import WorkQueue
from support.fakes.cluster import FakeCluster
from support.fakes.manual_clock import ManualClock
from support.values.operator import enforcer_status, pod_body

HERE = Path(__file__).parent
MACHINES = HERE.parent / "conformance" / "machines"
STORIES = sorted(HERE.glob("*.yaml"))
NODE = "node-1"
ROUNDS = 10


class Story:
    """One scenario being played."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        path = MACHINES / f"{scenario['machine']}.json"
        self.topology = _with(
            parse_machine(path.read_text(), str(path)), scenario.get("devices") or {}
        )
        self.cluster = FakeCluster()
        self.queue = WorkQueue()
        self.state = ClusterState(self.queue.add)
        clock = ManualClock()
        leading, events = asyncio.Event(), RefusalEvents(self.cluster, clock)
        self.statuses = StatusWriter(self.cluster, self.state, leading, clock)
        evictor = Evictor(self.cluster, self.state, events, leading, clock)
        outputs = Outputs(self.statuses, events, evictor)
        self.controller = Controller(self.cluster, self.state, self.queue, outputs)
        self.running: set[str] = set()
        self.bound = 0
        for name, labels in (scenario.get("namespaces") or {}).items():
            self.state.put_namespace(name, labels)
        self._add_node(scenario.get("node") or {})

    def _add_node(self, node: dict[str, Any]) -> None:
        everything = str(len(self.topology.online))
        capacity = node.get("capacity", everything)
        allocatable = node.get("allocatable", capacity)
        labels = node.get("labels") or {}
        system = SystemReservation(millis(capacity) - millis(allocatable))
        self.state.put_node(NodeView(NODE, "uid-node", labels, system))

    async def play(self, step: dict[str, Any]) -> None:
        """Carry out a step, and reconcile until nothing changes."""
        for name, spec in (step.get("policies") or {}).items():
            if spec is None:
                del self.cluster.policies[name]
            else:
                created = f"2026-01-01T00:00:{len(self.cluster.policies):02}Z"
                self.cluster.put_policy(name, {"releaseDelay": "0s"} | spec, created)
        for name, wish in (step.get("add") or {}).items():
            self._add_pod(name, wish if isinstance(wish, dict) else {"cpu": wish})
        for name in step.get("remove") or ():
            for key in (Key(name, "default"), Key(name, "trading")):
                self.state.drop_pod(key, NODE)
        self.running -= {f"uid-{name}" for name in step.get("stop") or ()}
        for _ in range(ROUNDS):
            await self._see()
            await self.controller.reconcile(NODE)
            self._enforce()
        await self.statuses.write(self.cluster.policies)

    def _add_pod(self, name: str, wish: dict[str, Any]) -> None:
        self.bound += 1
        bound = f"2026-01-01T01:00:{self.bound:02}Z"
        given = {key: wish[key] for key in ("labels", "namespace") if key in wish}
        body = pod_body(name, wish.get("cpu", "1"), node=NODE, bound=bound, **given)
        (main,) = body["spec"]["containers"]
        if memory := wish.get("memory"):
            for side in main["resources"].values():
                side["memory"] = memory
        if wish.get("qos") == "Burstable":
            del main["resources"]["limits"]
        for extra in wish.get("beside") or ():
            body["spec"]["containers"].append({"name": extra, "resources": main["resources"]})
        body["metadata"]["annotations"] = wish.get("annotations") or {}
        pod = parse_pod(body)
        self.running.add(pod.uid)
        self.state.put_pod(Key(pod.name, pod.namespace), pod)

    async def _see(self) -> None:
        self.state.replace_policies(await self.cluster.list_policies())
        now = await self.cluster.read_policies_version()
        seen = [AssignmentView.decode(body) for body in self.cluster.assignments.values()]
        self.state.replace_assignments(Listed(tuple(seen), now))

    def _enforce(self) -> None:
        """Report the spec as enforced."""
        if found := self.cluster.assignments.get(NODE):
            status = enforcer_status(
                found["metadata"]["generation"], topology=self.topology, running=self.running
            )
            if found.get("status") != status:
                self.cluster.put_status(NODE, status)

    def outcome(self) -> dict[str, Any]:
        """The node's assignment and the policies' conditions, in the terms of `expect`."""
        found = self.cluster.assignments.get(NODE)
        spec = found["spec"] if found else {}
        pools = spec.get("pools") or {}
        return {
            "gone": found is None,
            "policy": (spec.get("policy") or {}).get("name"),
            "mode": spec.get("mode"),
            "reserved": pools.get("reserved"),
            "shared": pools.get("shared"),
            "containers": {_named(one): one["cpus"] for one in spec.get("containers") or ()},
            "mems": {_named(one): one["mems"] for one in spec.get("containers") or ()},
            "refused": {one["pod"]: one["reason"] for one in spec.get("refused") or ()},
            "says": {name: self._says(name) for name in self.cluster.policies},
        }

    def _says(self, policy: str) -> list[list[str]]:
        conditions = self.cluster.policies[policy]["status"]["conditions"]
        return [[one["type"], one["reason"]] for one in conditions if one["status"] == "True"]


def _with(machine: Topology, devices: dict[str, int]) -> Topology:
    """The machine with network interfaces and disks, each on a PCI bus of a NUMA node."""
    addresses = {name: f"0000:{number:02x}:00.0" for number, name in enumerate(devices)}
    return replace(
        machine,
        pci=tuple(PciDevice(addresses[name], "0200", node) for name, node in devices.items()),
        names=tuple(DeviceName(name, (address,)) for name, address in addresses.items()),
    )


def _named(container: dict[str, Any]) -> str:
    pod, name = container["pod"], container["container"]
    return str(pod if name == "main" else f"{pod}/{name}")


@pytest.mark.parametrize("path", STORIES, ids=[path.stem for path in STORIES])
async def test_story(path: Path) -> None:
    scenario = yaml.safe_load(path.read_text())  # noqa: ASYNC240 - a small file
    story = Story(scenario)
    for number, step in enumerate(scenario["steps"], start=1):
        await story.play(step)
        found, expected = story.outcome(), step["expect"]
        compared = {key: found[key] for key in expected}
        assert compared == expected, f"step {number}: {step.get('note', '')}"
        writes = story.cluster.writes
        await story.play({})
        assert story.cluster.writes == writes, f"step {number} does not come to rest"


def test_there_are_stories() -> None:
    assert len(STORIES) >= 6
