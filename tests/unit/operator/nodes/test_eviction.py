from numapin_api.nodeassignment import Refusal
from numapin_operator.nodes.eviction import Evictor
from support.fakes.cluster import FakeCluster
from support.real.waiting import eventually, running


def refusal(pod: str) -> Refusal:
    return Refusal(
        pod_uid=f"uid-{pod}", namespace="default", pod=pod, reason="NotEnoughCPUs", message=""
    )


async def test_pods_are_evicted_once() -> None:
    cluster = FakeCluster()
    cluster.pods = {("default", "a"): "uid-a", ("default", "b"): "uid-b"}
    evictor = Evictor(cluster, pause_seconds=0)
    async with running(evictor.run()):
        evictor.offer([refusal("a"), refusal("a")])
        await eventually(lambda: len(cluster.pods) == 1)
        evictor.offer([refusal("a"), refusal("b")])
        await eventually(lambda: not cluster.pods)


async def test_another_pod_of_the_same_name_stays() -> None:
    cluster = FakeCluster()
    cluster.pods = {("default", "a"): "uid-of-its-successor", ("default", "b"): "uid-b"}
    evictor = Evictor(cluster, pause_seconds=0)
    async with running(evictor.run()):
        evictor.offer([refusal("a"), refusal("b")])
        await eventually(lambda: len(cluster.pods) == 1)
    assert list(cluster.pods) == [("default", "a")]


async def test_a_disruption_budget_is_waited_for() -> None:
    cluster = FakeCluster()
    cluster.pods, cluster.budget = {("default", "a"): "uid-a"}, 0
    evictor = Evictor(cluster, pause_seconds=0, retry_seconds=0.001)
    async with running(evictor.run()):
        evictor.offer([refusal("a")])
        await eventually(lambda: not evictor._wake.is_set())
        assert cluster.pods
        cluster.budget = 1
        await eventually(lambda: not cluster.pods)
