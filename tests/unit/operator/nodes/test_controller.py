"""The controller against the fake API server: it converges, and no stale write wins."""

import asyncio
from functools import partial
from typing import Any

import pytest

from numapin_client.errors import ConnectionFailedError, InvalidError
from numapin_client.resources import Key
from numapin_daemon.backoff import Backoff
from numapin_operator.leadership import Leadership, NotLeadingError
from numapin_operator.nodes.controller import Controller, Outputs
from numapin_operator.nodes.decide import Decision, NodePicture, decide
from numapin_operator.nodes.eviction import PAUSE_SECONDS, Evictor
from numapin_operator.nodes.refusal_events import RefusalEvents
from numapin_operator.nodes.workqueue import WorkQueue
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.records import AssignmentView, PolicyView
from numapin_operator.observe.versioned_cache import Listed
from numapin_operator.policies.status import Phase
from numapin_operator.policies.status_writer import StatusWriter
from support.fakes.cluster import FakeCluster
from support.fakes.manual_clock import ManualClock
from support.real.waiting import running
from support.values.operator import enforcer_status, is_idle, node_view, pod_view


class Operator:
    """The parts that decide and write, fed by the test instead of by watches."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.clock = ManualClock()
        self.queue = WorkQueue(partial(Backoff, 0.001, 0.01))
        self.state = ClusterState(self.queue.add)
        self.leading = asyncio.Event()
        self.leading.set()
        self.statuses = StatusWriter(cluster, self.state, self.leading, self.clock)
        self.events = RefusalEvents(cluster, self.clock)
        self.evictor = Evictor(cluster, self.state, self.events, self.leading, self.clock)
        outputs = Outputs(self.statuses, self.events, self.evictor)
        self.controller = Controller(cluster, self.state, self.queue, outputs)

    def observe(self) -> None:
        """Take in everything in the API server, as a list does."""
        policies = [PolicyView.decode(body) for body in self.cluster.policies.values()]
        self.state.replace_policies(Listed(tuple(policies), 10**9))
        seen = [AssignmentView.decode(body) for body in self.cluster.assignments.values()]
        self.state.replace_assignments(Listed(tuple(seen), 10**9))

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
            while not is_idle(self.queue):  # noqa: ASYNC110 - a seam only for tests would be worse
                await asyncio.sleep(0.001)
            await self.clock.run_tasks()
            for worker in workers:
                worker.cancel()


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
async def operator(cluster: FakeCluster) -> Operator:
    """A node with a policy and a reported topology."""
    cluster.put_policy("policy", {"reserved": {"count": 2}})
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


async def test_a_pod_is_placed_with_one_write(operator: Operator, cluster: FakeCluster) -> None:
    before = cluster.writes
    operator.add_pod("a")
    await operator.work_until_idle()
    assert (held(cluster), cluster.writes - before) == ({"a": "2-3"}, 1)


async def test_planning_again_writes_nothing(operator: Operator, cluster: FakeCluster) -> None:
    operator.add_pod("a")
    await operator.work_until_idle()
    before = cluster.writes
    for _ in range(3):
        operator.state.wake_all()
        await operator.work_until_idle()
    assert cluster.writes == before


async def test_a_restart_changes_nothing(operator: Operator, cluster: FakeCluster) -> None:
    operator.add_pod("a")
    operator.add_pod("b", "4")
    await operator.work_until_idle()
    before = dict(cluster.assignments["node-1"])
    restarted = Operator(cluster)
    restarted.state.put_node(node_view())
    restarted.add_pod("b", "4")
    restarted.add_pod("a")
    restarted.observe()
    await restarted.work_until_idle()
    assert cluster.assignments["node-1"] == before


async def test_a_stale_operator_reads_the_assignment_again(
    operator: Operator, cluster: FakeCluster
) -> None:
    """A rival gave `b` the CPUs that we would have given `a`."""
    rival = Operator(cluster)
    rival.state.put_node(node_view())
    rival.observe()
    rival.add_pod("b")
    await rival.work_until_idle()
    operator.add_pod("a")
    operator.add_pod("b")
    await operator.work_until_idle()
    assert held(cluster) == {"a": "4-5", "b": "2-3"}


async def test_an_enforcers_report_in_between_costs_one_more_attempt(
    operator: Operator, cluster: FakeCluster
) -> None:
    def report_once() -> None:
        cluster.before_write = lambda: None
        report(cluster)

    cluster.before_write = report_once
    operator.add_pod("a")
    await operator.work_until_idle()
    assert held(cluster) == {"a": "2-3"}


async def test_an_assignment_that_a_user_deleted_is_created_again(
    operator: Operator, cluster: FakeCluster
) -> None:
    del cluster.assignments["node-1"]
    operator.add_pod("a")
    await operator.work_until_idle()
    assert spec(cluster)["policy"] == {"name": "policy", "generation": 1}


async def test_an_assignment_that_exists_already_is_taken_over(cluster: FakeCluster) -> None:
    first = Operator(cluster)
    cluster.put_policy("policy", {"reserved": {"count": 2}})
    first.state.put_node(node_view())
    first.observe()
    await first.work_until_idle()
    report(cluster)
    blind = Operator(cluster)
    blind.state.put_node(node_view())
    blind.state.put_policy(cluster.policies["policy"])
    blind.add_pod("a")
    await blind.work_until_idle()
    assert held(cluster) == {"a": "2-3"}


async def test_failed_writes_are_retried(operator: Operator, cluster: FakeCluster) -> None:
    cluster.failures = [ConnectionFailedError("PUT", "refused") for _ in range(2)]
    operator.add_pod("a")
    await operator.work_until_idle()
    assert (held(cluster), cluster.failures) == ({"a": "2-3"}, [])


async def test_a_permanently_refused_write_shows_on_the_policy(
    operator: Operator, cluster: FakeCluster
) -> None:
    cluster.failures = [InvalidError("PUT node-1", 422, {"message": "spec.pools: unknown"})]
    operator.add_pod("a")
    with pytest.raises(InvalidError):
        await operator.controller.reconcile("node-1")
    await operator.statuses.write({"policy"})
    (stalled,) = cluster.policies["policy"]["status"]["stalled"]
    assert (stalled["node"], stalled["reason"]) == ("node-1", "Invalid")
    assert "spec.pools: unknown" in stalled["message"]
    await operator.work_until_idle()
    await operator.statuses.write({"policy"})
    assert cluster.policies["policy"]["status"]["stalled"] == []


async def test_each_refusal_gets_one_event(operator: Operator, cluster: FakeCluster) -> None:
    operator.add_pod("a", "4")
    operator.add_pod("b", "4")
    await operator.work_until_idle()
    operator.add_pod("c", "1")
    await operator.work_until_idle()
    assert [(event.pod, event.reason) for event in cluster.events] == [("b", "NotEnoughCPUs")]
    assert "wanted 4 CPUs, 2 free" in cluster.events[0].note


async def test_refused_pods_are_evicted_where_the_policy_says_so(
    operator: Operator, cluster: FakeCluster
) -> None:
    cluster.pods = {("default", name): f"uid-{name}" for name in ("a", "b")}
    cluster.put_policy("policy", {"reserved": {"count": 2}, "onUnsatisfiable": "Evict"})
    operator.observe()
    operator.add_pod("a", "4")
    operator.add_pod("b", "4")
    async with running(operator.evictor.run()):
        await operator.work_until_idle()
        await operator.clock.advance(PAUSE_SECONDS)
    assert list(cluster.pods) == [("default", "a")]
    assert cluster.events[0].note.endswith("it is evicted")


async def test_nothing_is_written_unless_leading(operator: Operator, cluster: FakeCluster) -> None:
    operator.leading.clear()
    before = cluster.writes
    operator.add_pod("a")
    working = asyncio.create_task(operator.work_until_idle())
    for _ in range(10):
        await asyncio.sleep(0)
    assert cluster.writes == before
    operator.leading.set()
    await working
    assert held(cluster) == {"a": "2-3"}


async def test_a_deleted_nodes_assignment_is_deleted(
    operator: Operator, cluster: FakeCluster
) -> None:
    operator.state.drop_node("node-1")
    await operator.work_until_idle()
    assert cluster.assignments == {}


async def test_without_a_policy_cgroups_are_released_and_then_the_assignment_is_deleted(
    operator: Operator, cluster: FakeCluster
) -> None:
    operator.add_pod("a")
    await operator.work_until_idle()
    cluster.policies.clear()
    operator.observe()
    await operator.work_until_idle()
    assert (spec(cluster)["mode"], spec(cluster)["containers"]) == ("None", [])
    report(cluster)
    operator.observe()
    await operator.work_until_idle()
    assert cluster.assignments == {}


async def test_a_policys_status_counts_its_nodes(operator: Operator, cluster: FakeCluster) -> None:
    report(cluster)
    operator.observe()
    await operator.work_until_idle()
    await operator.statuses.write({"policy"})
    status = cluster.policies["policy"]["status"]
    assert (status["nodesSelected"], status["nodesInForce"]) == (1, 1)
    before = cluster.writes
    await operator.statuses.write({"policy"})
    assert cluster.writes == before


async def test_an_overruled_policy_names_the_conflict(
    operator: Operator, cluster: FakeCluster
) -> None:
    cluster.put_policy("winner", {"priority": 1, "reserved": {"count": 4}})
    operator.observe()
    await operator.work_until_idle()
    assert spec(cluster)["policy"]["name"] == "winner"
    await operator.statuses.write({"policy", "winner"})
    conflicts = cluster.policies["policy"]["status"]["conflicts"]
    assert conflicts == [{"policy": "winner", "nodes": 1, "examples": ["node-1"]}]
    assert cluster.policies["winner"]["status"]["conflicts"] == []


async def test_a_defect_stalls_its_node_alone(
    operator: Operator,
    cluster: FakeCluster,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The worker lives on, retries, and logs the traceback once."""
    failures = iter(range(3))

    def failing(picture: NodePicture) -> Decision:
        if picture.name == "node-1" and next(failures, None) is not None:
            raise ZeroDivisionError("no CPUs")
        return decide(picture)

    monkeypatch.setattr("numapin_operator.nodes.controller.decide", failing)
    told = []
    monkeypatch.setattr(operator.statuses, "set_outcome", lambda *what: told.append(what))
    operator.state.put_node(node_view("node-2"))
    operator.add_pod("a")
    await operator.work_until_idle()
    assert "node-2" in cluster.assignments
    [(name, outcome), *_] = [one for one in told if one[0] == "node-1"]
    assert (name, outcome.phase, outcome.reason) == ("node-1", Phase.STALLED, "InternalError")
    assert "no CPUs" in outcome.message
    assert held(cluster) == {"a": "2-3"}, "it was retried"
    assert [one.exc_info is not None for one in caplog.records if "plan a node" in one.msg] == [
        True
    ]


async def test_a_deposed_leader_stops_at_a_conflict(
    operator: Operator, cluster: FakeCluster
) -> None:
    """Its plan is made of an old state: it must not be written over the new leader's."""
    leadership = Leadership(operator.clock)

    def depose() -> None:
        cluster.before_write = leadership.check
        report(cluster)

    cluster.before_write = depose
    operator.add_pod("a")
    with pytest.raises(NotLeadingError):
        await operator.controller.reconcile("node-1")
    assert held(cluster) == {}


async def test_a_node_whose_write_is_cancelled_is_planned_in_the_next_term(
    operator: Operator, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(cluster, "replace_spec", lambda *_: asyncio.Event().wait())
        operator.add_pod("a")
        async with running(operator.controller.work(operator.leading)):
            await operator.clock.run_tasks()
    await operator.work_until_idle()
    assert held(cluster) == {"a": "2-3"}
