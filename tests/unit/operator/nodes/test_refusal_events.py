import asyncio

from numapin_api.nodeassignment import Refusal
from numapin_client.errors import ConnectionFailedError
from numapin_operator.nodes.refusal_events import (
    QUIET_SECONDS,
    WAITING_NEWS,
    Teller,
    fresh_refusals,
)
from support.fakes.cluster import FakeCluster
from support.real.waiting import eventually, running


def refusal(pod: str, reason: str = "NotEnoughCPUs", message: str = "wanted 4") -> Refusal:
    return Refusal(
        pod_uid=f"uid-{pod}", namespace="default", pod=pod, reason=reason, message=message
    )


def test_news_are_new_pods_and_new_reasons() -> None:
    before = (refusal("a"), refusal("b"))
    after = (
        refusal("a", message="wanted 4, 1 free"),
        refusal("b", "SharedPoolEmpty"),
        refusal("c"),
    )
    assert [one.pod for one in fresh_refusals(before, after)] == ["b", "c"]
    assert fresh_refusals(after, after) == ()


async def test_the_same_refusal_is_told_once_a_minute() -> None:
    cluster, now = FakeCluster(), [0.0]
    teller = Teller(cluster, clock=lambda: now[0])
    async with running(teller.run()):
        for _ in range(3):
            teller.offer([refusal("a")], "it waits")
        teller.offer([refusal("a", "SharedPoolEmpty")], "it waits")
        await eventually(lambda: len(cluster.told) == 2)
        now[0] += QUIET_SECONDS
        teller.offer([refusal("a")], "it waits")
        await eventually(lambda: len(cluster.told) == 3)
    assert cluster.told[0].note == "wanted 4; it waits"


async def test_an_event_that_cannot_be_posted_holds_up_no_other() -> None:
    cluster = FakeCluster()
    cluster.failures = [ConnectionFailedError("POST", "refused")]
    teller = Teller(cluster)
    async with running(teller.run()):
        teller.offer([refusal("a"), refusal("b")], "it waits")
        await eventually(lambda: bool(cluster.told))
    assert [news.pod for news in cluster.told] == ["b"]


async def test_a_flood_is_cut_off() -> None:
    cluster = FakeCluster()
    teller = Teller(cluster)
    teller.offer([refusal(f"pod-{number}") for number in range(WAITING_NEWS + 50)], "it waits")
    async with running(teller.run()):
        await eventually(lambda: len(cluster.told) == WAITING_NEWS)
        await asyncio.sleep(0)
    assert len(cluster.told) == WAITING_NEWS
