from numapin_api.nodeassignment import Refusal
from numapin_operator.nodes.eviction import PAUSE_SECONDS, RETRY_SECONDS, Evictor
from support.fakes.cluster import FakeCluster
from support.fakes.manual_clock import ManualClock
from support.real.waiting import running


def refusal(pod: str) -> Refusal:
    return Refusal(
        pod_uid=f"uid-{pod}", namespace="default", pod=pod, reason="NotEnoughCPUs", message=""
    )


async def test_pods_are_evicted_once() -> None:
    cluster, clock = FakeCluster(), ManualClock()
    cluster.pods = {("default", "a"): "uid-a", ("default", "b"): "uid-b"}
    evictor = Evictor(cluster, clock)
    async with running(evictor.run()):
        evictor.offer([refusal("a"), refusal("a")])
        await clock.run_tasks()
        assert list(cluster.pods) == [("default", "b")]
        evictor.offer([refusal("a"), refusal("b")])
        await clock.advance(2 * PAUSE_SECONDS)
        assert not cluster.pods


async def test_pods_are_evicted_slowly() -> None:
    cluster, clock = FakeCluster(), ManualClock()
    cluster.pods = {("default", name): f"uid-{name}" for name in "abc"}
    evictor = Evictor(cluster, clock)
    async with running(evictor.run()):
        evictor.offer(refusal(name) for name in "abc")
        await clock.run_tasks()
        assert len(cluster.pods) == 2
        await clock.advance(PAUSE_SECONDS / 2)
        assert len(cluster.pods) == 2
        await clock.advance(PAUSE_SECONDS / 2)
        assert len(cluster.pods) == 1


async def test_another_pod_of_the_same_name_stays() -> None:
    cluster, clock = FakeCluster(), ManualClock()
    cluster.pods = {("default", "a"): "uid-of-its-successor", ("default", "b"): "uid-b"}
    evictor = Evictor(cluster, clock)
    async with running(evictor.run()):
        evictor.offer([refusal("a"), refusal("b")])
        await clock.advance(2 * PAUSE_SECONDS)
    assert list(cluster.pods) == [("default", "a")]


async def test_an_eviction_that_a_disruption_budget_refuses_is_retried() -> None:
    cluster, clock = FakeCluster(), ManualClock()
    cluster.pods, cluster.budget = {("default", "a"): "uid-a"}, 0
    evictor = Evictor(cluster, clock)
    async with running(evictor.run()):
        evictor.offer([refusal("a")])
        await clock.advance(PAUSE_SECONDS)
        cluster.budget = 1
        await clock.advance(RETRY_SECONDS - 1)
        assert cluster.pods
        await clock.advance(1)
        assert not cluster.pods
