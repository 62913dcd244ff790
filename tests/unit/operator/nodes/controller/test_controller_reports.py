"""What the controller says of a node: on the policy, in Events, and by evictions."""

import pytest

from numapin_client.errors import InvalidError
from numapin_operator.nodes.decide import Decision, NodePicture, decide
from numapin_operator.nodes.eviction.evictor import PAUSE_SECONDS
from numapin_operator.policies.status import Phase
from support.fakes.cluster import FakeCluster
from support.fakes.operator import Operator, held, operator_of_one_node, report, spec
from support.real.waiting import running
from support.values.operator import node_view


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
async def operator(cluster: FakeCluster) -> Operator:
    return await operator_of_one_node(cluster)


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

    monkeypatch.setattr("numapin_operator.nodes.reserving.decide", failing)
    outcomes = []
    monkeypatch.setattr(operator.statuses, "set_outcome", lambda *what: outcomes.append(what))
    operator.state.put_node(node_view("node-2"))
    operator.add_pod("a")
    await operator.work_until_idle()
    assert "node-2" in cluster.assignments
    [(name, outcome), *_] = [one for one in outcomes if one[0] == "node-1"]
    assert (name, outcome.phase, outcome.reason) == ("node-1", Phase.STALLED, "InternalError")
    assert "no CPUs" in outcome.message
    assert held(cluster) == {"a": "2-3"}, "it was retried"
    assert [one.exc_info is not None for one in caplog.records if "plan a node" in one.msg] == [
        True
    ]
