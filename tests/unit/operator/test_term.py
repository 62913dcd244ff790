"""Each part of a term does its duty again in the next one, whatever the last one left."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from numapin_client.errors import ConnectionFailedError
from numapin_client.resources import Key
from numapin_daemon.telemetry.meter import Meter
from numapin_operator.installation.leadership import Leadership
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.observe.records import PolicyView
from numapin_operator.observe.stores.versioned_cache import Listed
from numapin_operator.telemetry.table import METRICS
from numapin_operator.term import Lasting, Term
from support.fakes.cluster import FakeCluster
from support.fakes.manual_clock import ManualClock
from support.real.waiting import running
from support.values.operator import (
    condition,
    cpu_claiming_body,
    enforcer_status,
    node_view,
    pod_view,
)

HOUR = 3600.0
AWAY_SECONDS = 15.0
STATIC: dict[str, Any] = {"reserved": {"count": 2}, "releaseDelay": "100s"}


class Replica:
    """One operator process that leads at times: what it has observed stays, its terms do not."""

    def __init__(
        self, cluster: FakeCluster | None = None, annotates: bool = False, publishes: bool = False
    ) -> None:
        self.cluster = cluster or FakeCluster()
        self.clock, self.state = ManualClock(), ClusterState()
        self.leadership = Leadership(self.clock)
        self.lasting = Lasting(
            self.cluster,
            self.state,
            self.leadership.leading,
            self.clock,
            Meter(METRICS),
            lambda _: None,
            annotates,
            publishes=publishes,
        )
        self.state.put_node(node_view())

    @asynccontextmanager
    async def term(self) -> AsyncIterator[Term]:
        """Lead for as long as the context lasts; what is observed is of its beginning."""
        self.observe()
        self.leadership.extend(self.clock.monotonic() + 10 * HOUR)
        made = Term(self.lasting)
        async with running(made.run()):
            await self.clock.run_tasks()
            yield made
        self.leadership.end()

    def observe(self) -> None:
        """Take in all policies and assignments, as from their watches."""
        now = int(self.cluster._next())
        policies = [PolicyView.decode(body) for body in self.cluster.policies.values()]
        self.state.replace_policies(Listed(tuple(policies), now))
        seen = [AssignmentView.decode(body) for body in self.cluster.assignments.values()]
        self.state.replace_assignments(Listed(tuple(seen), now))

    async def settle(self) -> None:
        """Let everything that is due now be done, and observed."""
        for _ in range(3):
            self.observe()
            await self.clock.advance(1)

    async def enforce(self, *pods: str) -> None:
        """Have the enforcer report the newest spec as in force."""
        metadata = self.cluster.assignments["node-1"]["metadata"]
        read_back = [
            {"podUID": one["podUID"], "container": one["container"], "cpus": one["cpus"]}
            for one in self.spec["containers"]
        ]
        status = enforcer_status(metadata["generation"], running=pods)
        self.cluster.put_status("node-1", status | {"containers": read_back})
        await self.settle()

    def add(self, pod: str, cpu: str = "2") -> None:
        self.cluster.pods["default", pod] = f"uid-{pod}"
        self.state.put_pod(Key(pod, "default"), pod_view(pod, cpu))

    @property
    def spec(self) -> dict[str, Any]:
        found: dict[str, Any] = self.cluster.assignments["node-1"]["spec"]
        return found

    def ready(self) -> tuple[str, str]:
        """The condition Ready of the policy, and its reason."""
        conditions = self.cluster.policies["policy"]["status"]["conditions"]
        (one,) = [one for one in conditions if one["type"] == "Ready"]
        return one["status"], one["reason"]

    def unserved(self) -> int:
        return int(self.cluster.policies["policy"]["status"].get("nodesNotServed", 0))


Step = Callable[[Replica], Awaitable[None]]


async def govern(replica: Replica, **fields: Any) -> None:
    replica.cluster.put_policy("policy", STATIC | fields)
    await replica.settle()
    for _ in range(2):  # the hardware is known after the first one
        await replica.enforce()


async def begin_release(replica: Replica) -> None:
    await govern(replica)
    replica.cluster.policies.clear()
    await replica.settle()
    assert replica.spec["releaseAt"]


async def begin_to_wait_for_the_enforcer(replica: Replica) -> None:
    replica.cluster.put_policy("policy", STATIC)
    await replica.settle()
    assert replica.unserved() == 0


async def begin_to_move(replica: Replica) -> None:
    await govern(replica, mode="Dynamic")
    replica.add("a")
    await replica.settle()
    at = replica.clock.now().replace(minute=0, second=30).strftime("%Y-%m-%dT%H:%M:%SZ")
    body = replica.cluster.assignments["node-1"]
    (held,) = body["spec"]["containers"]
    held |= {"cpus": "2-5", "moving": {"leaving": "2-3", "at": at}}
    body["metadata"]["generation"] += 1
    await replica.enforce("uid-a")
    assert replica.spec["containers"][0]["cpus"] == "2-5"


async def fail_to_write_the_status(replica: Replica) -> None:
    away = ConnectionFailedError("PUT", "the API server is away")
    await govern(replica)
    generation = replica.cluster.assignments["node-1"]["metadata"]["generation"]
    stalled = [condition("Stalled", reason="CgroupWriteFailed")]
    replica.cluster.put_status("node-1", enforcer_status(generation, conditions=stalled))
    replica.cluster.failures = [away] * 99
    await replica.settle()
    assert replica.ready()[1] != "NodesStalled"


async def begin_to_wait_for_a_claim(replica: Replica) -> None:
    await govern(replica)
    pod = parse_pod(cpu_claiming_body("a"))
    replica.state.put_pod(Key("a", "default"), pod)
    await replica.settle()
    assert replica.cluster.claims_read
    replica.cluster.claims_read.clear()


async def begin_to_evict(replica: Replica) -> None:
    replica.cluster.budget = 0
    await govern(replica, onUnsatisfiable="Evict")
    replica.add("big", "7")
    await replica.settle()
    assert replica.cluster.pods


async def do_nothing(replica: Replica) -> None:
    await govern(replica)


async def fail_to_annotate(replica: Replica) -> None:
    await govern(replica)
    replica.cluster.failures = [ConnectionFailedError("PUT", "the API server is away")] * 99
    replica.add("a")
    await replica.clock.advance(3)
    assert not replica.cluster.annotations


async def fail_to_publish(replica: Replica) -> None:
    await govern(replica)
    replica.cluster.failures = [ConnectionFailedError("PUT", "the API server is away")] * 99
    replica.cluster.put_policy("policy", STATIC | {"publish": {"nodeResourceTopology": "Zones"}})
    await replica.clock.advance(3)


async def leave_an_object(replica: Replica) -> None:
    """Of a node that is gone."""
    owner = {"metadata": {"name": "lost", "labels": {"app.kubernetes.io/managed-by": "numapin"}}}
    await replica.cluster.create_resource_topology(owner)
    replica.cluster.failures = [ConnectionFailedError("LIST", "the API server is away")] * 99


async def refuse(replica: Replica) -> None:
    replica.add("big", "7")


async def allow(replica: Replica) -> None:
    replica.cluster.budget = 10


async def change_nothing(_: Replica) -> None:
    pass


@dataclass(frozen=True)
class Duty:
    """What a part begins in one term, and must have done by the end of the next one."""

    part: str
    begin: Step
    done: Callable[[Replica], bool]
    then: Step = change_nothing
    """What happens in the second term."""


DUTIES = {
    "release": Duty("planning", begin_release, lambda one: one.spec["mode"] == "None"),
    "patience": Duty("planning", begin_to_wait_for_the_enforcer, lambda one: one.unserved() == 1),
    "move": Duty("planning", begin_to_move, lambda one: one.spec["containers"][0]["cpus"] == "4-5"),
    "claim": Duty(
        "planning", begin_to_wait_for_a_claim, lambda one: len(one.cluster.claims_read) > 1
    ),
    "status": Duty(
        "policy statuses", fail_to_write_the_status, lambda one: one.ready()[1] == "NodesStalled"
    ),
    "eviction": Duty("eviction", begin_to_evict, lambda one: not one.cluster.pods, allow),
    "event": Duty("refusal events", do_nothing, lambda one: bool(one.cluster.events), refuse),
    "publishing": Duty(
        "publishing", fail_to_publish, lambda one: "node-1" in one.cluster.resource_topologies
    ),
    "sweeping": Duty(
        "sweeping what is published",
        leave_an_object,
        lambda one: "lost" not in one.cluster.resource_topologies,
    ),
    "annotation": Duty("annotating", fail_to_annotate, lambda one: bool(one.cluster.annotations)),
}


@pytest.mark.parametrize("duty", DUTIES.values(), ids=DUTIES.keys())
async def test_what_a_part_began_is_done_in_the_next_term(duty: Duty) -> None:
    publishes = "publish" in duty.part
    replica = Replica(annotates=duty.part == "annotating", publishes=publishes)
    async with replica.term():
        await duty.begin(replica)
    assert not duty.done(replica)
    replica.cluster.failures.clear()
    await replica.clock.advance(AWAY_SECONDS)
    assert not duty.done(replica), "it does not lead"
    async with replica.term():
        await duty.then(replica)
        await replica.clock.advance(HOUR)
    assert duty.done(replica)


async def test_every_part_of_a_term_has_a_duty_above() -> None:
    """A new part must be tried over two terms as well."""
    term = Term(Replica(annotates=True, publishes=True).lasting)
    assert {one.name for one in term.parts()} == {one.part for one in DUTIES.values()}


async def test_a_term_is_told_what_changes_and_a_lost_one_is_not() -> None:
    replica = Replica()
    async with replica.term() as term:
        await govern(replica)
        assert term.queue.state().waiting == 0
    replica.state.put_node(node_view("another"))
    replica.observe()
    assert term.queue.state().waiting == 0
    async with replica.term():
        await replica.settle()
    assert "another" in replica.cluster.assignments


async def test_the_release_of_an_earlier_term_does_not_count() -> None:
    """Meanwhile the policy has returned, and gone again, under another leader."""
    cluster = FakeCluster()
    one, other = Replica(cluster), Replica(cluster)
    async with one.term():
        await begin_release(one)
    async with other.term():
        await govern(other)
        assert "releaseAt" not in other.spec
        await other.clock.advance(HOUR)
        cluster.policies.clear()
        await other.settle()
        announced = other.spec["releaseAt"]
    await one.clock.advance(other.clock.monotonic() - one.clock.monotonic())
    async with one.term():
        await one.settle()
        assert (one.spec["mode"], one.spec["releaseAt"]) == ("Static", announced)


async def test_a_new_leader_leaves_a_status_alone_until_every_node_is_planned() -> None:
    """It led before: what it knew then is older than what the other leader wrote."""
    cluster = FakeCluster()
    one, other = Replica(cluster), Replica(cluster)
    async with one.term():
        await govern(one)
        assert one.ready() == ("True", "InForce")
    stalled = [condition("Stalled", reason="CgroupWriteFailed")]
    generation = cluster.assignments["node-1"]["metadata"]["generation"]
    cluster.put_status("node-1", enforcer_status(generation, conditions=stalled))
    async with other.term():
        await other.settle()
        assert other.ready()[1] == "NodesStalled"
    one.observe()
    writes = cluster.writes
    async with one.term():
        await one.settle()
    assert (one.ready()[1], cluster.writes) == ("NodesStalled", writes)
