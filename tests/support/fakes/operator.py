"""The parts of the operator that decide and write, against the fake API server."""

import asyncio
from functools import partial
from typing import Any

from numapin_client.resources import Key
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_operator.nodes.controller import Controller
from numapin_operator.nodes.events.refusal_events import RefusalEvents
from numapin_operator.nodes.eviction.evictor import Evictor
from numapin_operator.nodes.outputs import Outputs
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.records import PolicyView
from numapin_operator.observe.revisions import Revision
from numapin_operator.observe.stores.versioned_cache import Listed
from numapin_operator.policies.sharing.claims import Sharing
from numapin_operator.policies.status_writer import StatusWriter
from numapin_operator.queues.workqueue import WorkQueue
from numapin_operator.shards.division import Portion
from support.fakes.cluster import FakeCluster
from support.fakes.manual_clock import ManualClock
from support.values.operator import enforcer_status, is_idle, node_view, pod_view


class Operator:
    """The parts that decide and write, fed by the test instead of by watches."""

    def __init__(self, cluster: FakeCluster, portion: Portion | None = None) -> None:
        """With a portion, it is one of several that share the nodes."""
        self.cluster, self.portion = cluster, portion
        self.clock = ManualClock()
        self.queue = WorkQueue(partial(Backoff, 0.001, 0.01), clock=self.clock)
        self.state = ClusterState(self.queue.add)
        self.leading = asyncio.Event()
        self.leading.set()
        self.statuses = StatusWriter(cluster, self.state, self.leading, self.clock)
        if portion is not None:
            self.statuses.sharing = Sharing(portion.shard, portion.shards)
        self.events = RefusalEvents(cluster, self.clock)
        self.evictor = Evictor(cluster, self.state, self.events, self.leading, self.clock)
        self.outputs = Outputs(self.statuses, self.events, self.evictor)
        self.controller = Controller(cluster, self.state, self.queue, self.outputs, self.clock)

    def observe(self) -> None:
        """Take in everything in the API server, as a list does."""
        now = int(self.cluster._next())
        policies = [PolicyView.decode(body) for body in self.cluster.policies.values()]
        self.state.replace_policies(Listed(tuple(policies), now))
        revisions = self.state.revisions
        for name, body in self.cluster.revisions.items():
            if (stored := Revision.decode(body)) is not None:
                revisions.put(stored)
            else:
                revisions.drop(name)
        for one in tuple(revisions.stored()):
            if one.name not in self.cluster.revisions:
                revisions.drop(one.name)
        found = self.cluster.assignments.items()
        seen = [AssignmentView.decode(body) for name, body in found if self.plans(name)]
        self.state.replace_assignments(Listed(tuple(seen), now))

    def plans(self, node: str) -> bool:
        """Whether a node is its own."""
        return self.portion is None or self.portion.has(node)

    def add_pod(self, name: str, cpu: str = "2") -> None:
        self.state.put_pod(Key(name, "default"), pod_view(name, cpu))

    async def work_until_idle(self) -> None:
        """Work until nothing is left to do."""
        async with asyncio.TaskGroup() as tasks:
            workers = [
                tasks.create_task(self.controller.work(self.leading)),
                tasks.create_task(self.controller.work(self.leading)),
                tasks.create_task(self.events.run()),
            ]
            await self.clock.run_tasks()
            while not is_idle(self.queue):
                await asyncio.sleep(0.001)
                if self.queue.state().delayed and not self.queue.state().waiting:
                    await self.clock.advance(0.01)
            await self.clock.run_tasks()
            for worker in workers:
                worker.cancel()


async def operator_of_one_node(cluster: FakeCluster) -> Operator:
    """An operator whose only node has a policy and a reported topology."""
    cluster.put_policy("policy", {"reserved": {"count": 2}, "releaseDelay": "0s"})
    made = Operator(cluster)
    made.state.put_node(node_view())
    made.observe()
    await made.work_until_idle()
    report(cluster)
    made.observe()
    await made.work_until_idle()
    return made


def report(cluster: FakeCluster, *running: str) -> None:
    generation = cluster.assignments["node-1"]["metadata"]["generation"]
    cluster.put_status("node-1", enforcer_status(generation, running=running))


def spec(cluster: FakeCluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.assignments["node-1"]["spec"]
    return found


def held(cluster: FakeCluster) -> dict[str, str]:
    return {one["pod"]: one["cpus"] for one in spec(cluster)["containers"]}
