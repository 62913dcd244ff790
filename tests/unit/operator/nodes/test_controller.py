"""The controller against the fake API server: it converges, and nothing stale wins."""

import asyncio
from typing import Any

import pytest

from numapin_client.errors import ConnectionFailedError, InvalidError
from numapin_client.resources import Key
from numapin_operator.nodes.controller import Controller
from numapin_operator.nodes.workqueue import WorkQueue
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.records import AssignmentView, PolicyView
from numapin_operator.observe.versioned_cache import Listed
from numapin_operator.policies.status_writer import Reporter
from support.fakes.cluster import FakeCluster
from support.real.waiting import eventually, running
from support.values.operator import enforcer_status, node_view, pod_view


class Operator:
    """The parts that decide and write, fed by hand instead of by watches."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.queue = WorkQueue()
        self.reporter = Reporter(cluster, clock=lambda: "2026-02-02T00:00:00Z")
        self.state = ClusterState(self.queue.add, self.reporter.policy_changed)
        self.controller = Controller(cluster, self.state, self.queue, self.reporter)
        self.leading = asyncio.Event()
        self.leading.set()

    def see(self) -> None:
        """Take in all that is in the API server, as watches would bring it."""
        policies = [PolicyView.decode(body) for body in self.cluster.policies.values()]
        self.state.replace_policies(Listed(tuple(policies), 10**9))
        seen = [AssignmentView.decode(body) for body in self.cluster.assignments.values()]
        self.state.replace_assignments(Listed(tuple(seen), 10**9))

    def add_pod(self, name: str, cpu: str = "2") -> None:
        self.state.put_pod(Key(name, "default"), pod_view(name, cpu))

    async def settle(self) -> None:
        """Work until nothing is left to do."""
        async with asyncio.TaskGroup() as tasks:
            workers = [
                tasks.create_task(self.controller.work(self.leading)),
                tasks.create_task(self.controller.work(self.leading)),
                tasks.create_task(self.controller.teller.run()),
            ]
            while not self.queue.idle:  # noqa: ASYNC110 - a seam only for tests would be worse
                await asyncio.sleep(0.001)
            await asyncio.sleep(0)
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
    made.see()
    await made.settle()
    report(cluster)
    made.see()
    await made.settle()
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
    await operator.settle()
    assert (held(cluster), cluster.writes - before) == ({"a": "2-3"}, 1)


async def test_looking_again_writes_nothing(operator: Operator, cluster: FakeCluster) -> None:
    operator.add_pod("a")
    await operator.settle()
    before = cluster.writes
    for _ in range(3):
        operator.state.wake_all()
        await operator.settle()
    assert cluster.writes == before


async def test_a_restart_changes_nothing(operator: Operator, cluster: FakeCluster) -> None:
    operator.add_pod("a")
    operator.add_pod("b", "4")
    await operator.settle()
    before = dict(cluster.assignments["node-1"])
    restarted = Operator(cluster)
    restarted.state.put_node(node_view())
    restarted.add_pod("b", "4")
    restarted.add_pod("a")
    restarted.see()
    await restarted.settle()
    assert cluster.assignments["node-1"] == before


async def test_a_stale_operator_reads_again(operator: Operator, cluster: FakeCluster) -> None:
    """Another one has placed `b` where we would have put `a`."""
    rival = Operator(cluster)
    rival.state.put_node(node_view())
    rival.see()
    rival.add_pod("b")
    await rival.settle()
    operator.add_pod("a")
    operator.add_pod("b")
    await operator.settle()
    assert held(cluster) == {"a": "4-5", "b": "2-3"}


async def test_an_enforcers_report_in_between_costs_one_more_try(
    operator: Operator, cluster: FakeCluster
) -> None:
    def report_once() -> None:
        cluster.before_write = lambda: None
        report(cluster)

    cluster.before_write = report_once
    operator.add_pod("a")
    await operator.settle()
    assert held(cluster) == {"a": "2-3"}


async def test_an_assignment_deleted_by_hand_comes_back(
    operator: Operator, cluster: FakeCluster
) -> None:
    del cluster.assignments["node-1"]
    operator.add_pod("a")
    await operator.settle()
    assert spec(cluster)["policy"] == {"name": "policy", "generation": 1}


async def test_an_assignment_that_is_there_already_is_taken_over(cluster: FakeCluster) -> None:
    first = Operator(cluster)
    cluster.put_policy("policy", {"reserved": {"count": 2}})
    first.state.put_node(node_view())
    first.see()
    await first.settle()
    report(cluster)
    blind = Operator(cluster)
    blind.state.put_node(node_view())
    blind.state.put_policy(cluster.policies["policy"])
    blind.add_pod("a")
    await blind.settle()
    assert held(cluster) == {"a": "2-3"}


async def test_failures_are_tried_again(operator: Operator, cluster: FakeCluster) -> None:
    cluster.failures = [ConnectionFailedError("PUT", "refused") for _ in range(2)]
    operator.add_pod("a")
    await operator.settle()
    assert (held(cluster), cluster.failures) == ({"a": "2-3"}, [])


async def test_a_write_that_is_refused_for_good_shows_on_the_policy(
    operator: Operator, cluster: FakeCluster
) -> None:
    cluster.failures = [InvalidError("PUT node-1", 422, {"message": "spec.pools: unknown"})]
    operator.add_pod("a")
    with pytest.raises(InvalidError):
        await operator.controller.reconcile("node-1")
    await operator.reporter.report(operator.state, {"policy"})
    (stalled,) = cluster.policies["policy"]["status"]["stalled"]
    assert (stalled["node"], stalled["reason"]) == ("node-1", "Invalid")
    assert "spec.pools: unknown" in stalled["message"]
    await operator.settle()
    await operator.reporter.report(operator.state, {"policy"})
    assert cluster.policies["policy"]["status"]["stalled"] == []


async def test_refusals_are_told_once(operator: Operator, cluster: FakeCluster) -> None:
    operator.add_pod("a", "4")
    operator.add_pod("b", "4")
    await operator.settle()
    operator.add_pod("c", "1")
    await operator.settle()
    assert [(news.pod, news.reason) for news in cluster.told] == [("b", "NotEnoughCPUs")]
    assert "wanted 4 CPUs, 2 free" in cluster.told[0].note


async def test_refused_pods_are_evicted_where_the_policy_says_so(
    operator: Operator, cluster: FakeCluster
) -> None:
    cluster.pods = {("default", name): f"uid-{name}" for name in ("a", "b")}
    cluster.put_policy("policy", {"reserved": {"count": 2}, "onUnsatisfiable": "Evict"})
    operator.see()
    operator.add_pod("a", "4")
    operator.add_pod("b", "4")
    async with running(operator.controller.evictor.run()):
        await operator.settle()
        await eventually(lambda: len(cluster.pods) == 1)
    assert list(cluster.pods) == [("default", "a")]
    assert cluster.told[0].note.endswith("it is evicted")


async def test_nothing_is_written_without_the_lead(
    operator: Operator, cluster: FakeCluster
) -> None:
    operator.leading.clear()
    before = cluster.writes
    operator.add_pod("a")
    settling = asyncio.create_task(operator.settle())
    for _ in range(10):
        await asyncio.sleep(0)
    assert cluster.writes == before
    operator.leading.set()
    await settling
    assert held(cluster) == {"a": "2-3"}


async def test_a_node_that_goes_takes_its_assignment_along(
    operator: Operator, cluster: FakeCluster
) -> None:
    operator.state.drop_node("node-1")
    await operator.settle()
    assert cluster.assignments == {}


async def test_without_a_policy_all_is_given_back_and_then_deleted(
    operator: Operator, cluster: FakeCluster
) -> None:
    operator.add_pod("a")
    await operator.settle()
    cluster.policies.clear()
    operator.see()
    await operator.settle()
    assert (spec(cluster)["mode"], spec(cluster)["containers"]) == ("None", [])
    report(cluster)
    operator.see()
    await operator.settle()
    assert cluster.assignments == {}


async def test_statuses_follow(operator: Operator, cluster: FakeCluster) -> None:
    report(cluster)
    operator.see()
    await operator.settle()
    await operator.reporter.report(operator.state, {"policy"})
    status = cluster.policies["policy"]["status"]
    assert (status["nodesSelected"], status["nodesInForce"]) == (1, 1)
    before = cluster.writes
    await operator.reporter.report(operator.state, {"policy"})
    assert cluster.writes == before


async def test_the_loser_of_two_policies_says_so(operator: Operator, cluster: FakeCluster) -> None:
    cluster.put_policy("winner", {"priority": 1, "reserved": {"count": 4}})
    operator.see()
    await operator.settle()
    assert spec(cluster)["policy"]["name"] == "winner"
    await operator.reporter.report(operator.state, {"policy", "winner"})
    conflicts = cluster.policies["policy"]["status"]["conflicts"]
    assert conflicts == [{"policy": "winner", "nodes": 1, "examples": ["node-1"]}]
    assert cluster.policies["winner"]["status"]["conflicts"] == []
