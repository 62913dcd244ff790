"""Held pods, their scheduler and their users, against the fake API server, step by step."""

import asyncio
from dataclasses import replace
from typing import Any

from numapin_api import names
from numapin_api.cpuset import CpuSet
from numapin_api.topology import Topology
from numapin_client.resources import Key
from numapin_operator.holding.controller import Planning, PodHolding
from numapin_operator.observe.holding.held_pod import HeldPod
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import Allocatable
from support.fakes.cluster import FakeCluster
from support.fakes.operator import Operator
from support.values.held_pods import decoded, held_body, patched
from support.values.operator import Body, enforcer_status, node_view
from support.values.placement import machine

MACHINE: Topology = machine(8, numa_nodes=2)
HOLD: Body = {"reserved": {"cpus": "0"}, "onUnsatisfiable": "Hold", "releaseDelay": "0s"}
NAMESPACE = "default"


class _NoWatch:
    """The test itself delivers what a watch would."""

    def __init__(self) -> None:
        self.synced = asyncio.Event()

    async def run(self) -> None:
        await asyncio.Event().wait()


class HeldWorld:
    """Some nodes of 8 CPUs on 2 NUMA nodes, and pods that wait for them."""

    def __init__(self, nodes: int, spec: Body | None = None) -> None:
        self.cluster = FakeCluster()
        self.nodes = [f"n{number}" for number in range(nodes)]
        self.cluster.put_policy("policy", HOLD | (spec or {}))
        self.bodies: dict[str, Body] = {}
        self.namespace = {names.HOLD_LABEL: names.HOLD_ENABLED}
        self.labels: dict[str, dict[str, str]] = {}

    async def start(self) -> None:
        """An operator begins its term, with nothing but what the API server has."""
        self.operator = operator = Operator(self.cluster)
        state = operator.state
        offered = Allocatable(8000, 8 << 30, 100)
        for name in self.nodes:
            view = node_view(name, self.labels.get(name))
            state.put_node(replace(view, allocatable=offered))
        state.put_namespace(NAMESPACE, self.namespace)
        planning = Planning(operator.controller.foresee, operator.queue.add, lambda _: _NoWatch())  # type: ignore[arg-type]
        self.holding = PodHolding(self.cluster, state, planning, operator.events, operator.clock)
        operator.outputs.assigned = self.holding.settled
        operator.observe()
        for name in self.bodies:
            self._deliver(name)
        self.holding._needed.set()
        self.holding._begin()

    async def ready(self) -> None:
        """Start, and have every node planned and enforced."""
        await self.start()
        for _ in range(3):
            await self.plan()
            self.enforce()

    async def plan(self) -> None:
        """Have every node that waits planned and written."""
        await self.operator.work_until_idle()

    def enforce(self) -> None:
        """Every enforcer reports that what is written is in force; bound pods run."""
        running = [one["metadata"]["uid"] for one in self.bodies.values() if _node(one)]
        for name, body in self.cluster.assignments.items():
            here = {one["podUID"] for one in body["spec"].get("containers", ())}
            status = enforcer_status(
                body["metadata"]["generation"],
                running=sorted(here & set(running)),
                topology=MACHINE,
            )
            self.cluster.put_status(name, status)
        self.operator.observe()

    def add(self, name: str, cpu: str = "2", **others: Any) -> None:
        """A user creates a pod, which the API server gates."""
        body = held_body(name, cpu, **others)
        self.bodies[name] = body
        self.cluster.pods[NAMESPACE, name] = body["metadata"]["uid"]
        self._deliver(name)

    def delete(self, name: str) -> None:
        """A pod is gone."""
        body = self.bodies.pop(name)
        key = Key(name, NAMESPACE)
        del self.cluster.pods[NAMESPACE, name]
        self.cluster.pod_views.pop(key, None)
        if _node(body):
            self.operator.state.drop_pod(key, _node(body))
        else:
            self._held(body, None)

    def bind(self, name: str, node: str = "") -> None:
        """A scheduler binds a pod; by default to the node that its affinity names."""
        held = decoded(self.bodies[name])
        node = node or (held.pinned if held else "")
        body = self.bodies[name]
        spec = {key: one for key, one in body["spec"].items() if key != "schedulingGates"}
        self.bodies[name] = body | {"spec": spec | {"nodeName": node}}
        self._held(body, None)
        self._deliver(name)

    async def look(self) -> None:
        """Held pods are looked at once: wishes, no writes."""
        await self.holding._look()

    async def open(self) -> None:
        """Gates are opened that are to be opened."""
        gates = self.holding._gates
        while gates._queue.state().waiting:
            uid = await gates._queue.take()
            await gates._step(uid)
            gates._queue.done(uid)
        for key, patch in self.cluster.held_patches:
            self._patch(key.name, patch)
        self.cluster.held_patches.clear()

    async def settle(self) -> None:
        """Do all of this until nothing changes any more."""
        for _ in range(4):
            await self.look()
            await self.plan()
            self.enforce()
            await self.plan()
            await self.look()
            await self.open()
            await self.plan()

    def is_gated(self, name: str) -> bool:
        """Whether a pod waits for numapin."""
        held = decoded(self.bodies[name])
        return held is not None and held.is_gated

    def pinned(self, name: str) -> str:
        """The node that a pod was opened for."""
        held = decoded(self.bodies[name])
        return held.pinned if held is not None and not held.is_gated else ""

    def lines(self, node: str) -> dict[str, CpuSet]:
        """Each pod's CPUs on a node."""
        containers = self.cluster.assignments[node]["spec"].get("containers", ())
        return {one["pod"]: CpuSet.parse(one["cpus"]) for one in containers}

    def check(self) -> None:
        """No CPU of a node belongs to two pods, and none that is reserved."""
        for node in self.cluster.assignments:
            found = self.lines(node)
            taken = CpuSet.union(found.values())
            assert len(taken) == sum(map(len, found.values())), (node, found)
            assert 0 not in taken

    def _patch(self, name: str, patch: Body) -> None:
        body = patched(self.bodies[name], patch)
        body["metadata"]["resourceVersion"] = str(int(body["metadata"]["resourceVersion"]) + 1)
        self.bodies[name] = body
        node = self.pinned(name)
        if node and not self.is_gated(name):
            assert name in self.lines(node), "it is opened only once it has its place"
        self._deliver(name)

    def _deliver(self, name: str) -> None:
        """The watches deliver a pod as it is."""
        body, key = self.bodies[name], Key(name, NAMESPACE)
        view = parse_pod(body)
        self.cluster.pod_views[key] = view
        if view.node:
            self.operator.state.put_pod(key, view)
        else:
            self._held(body, decoded(body, self.operator.state.held.pods))

    def _held(self, body: Body, new: HeldPod | None) -> None:
        """The watch of unbound pods delivers one, or that it has none of this UID any more."""
        state = self.operator.state
        state.replace_held(state.held.pods.get(body["metadata"]["uid"]), new)


def _node(body: Body) -> str:
    return str(body["spec"].get("nodeName") or "")
