"""Something else changes what the operator writes: it writes again, at growing intervals."""

import pytest

from numapin_operator.nodes.contention import AT_ONCE, FORGET_SECONDS, LONGEST_SECONDS
from support.fakes.cluster import Body, FakeCluster
from support.fakes.operator import Operator, operator_of_one_node, spec
from support.real.waiting import running


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
async def operator(cluster: FakeCluster) -> Operator:
    return await operator_of_one_node(cluster)


def change(wire: Body) -> Body:
    return wire | {"mode": "Audit"}


def edit(cluster: FakeCluster) -> None:
    """Change the spec, as a controller or a person does."""
    held = cluster.assignments["node-1"]
    metadata = held["metadata"] | {"resourceVersion": cluster._next()}
    metadata["generation"] += 1
    cluster.assignments["node-1"] = held | {"metadata": metadata, "spec": change(held["spec"])}


async def stalled(operator: Operator, cluster: FakeCluster) -> list[tuple[str, str]]:
    await operator.statuses.write({"policy"})
    found = cluster.policies["policy"]["status"]["stalled"]
    return [(one["node"], one["reason"]) for one in found]


async def pass_time(operator: Operator, seconds: float) -> None:
    async with running(operator.controller.work(operator.leading)):
        await operator.clock.advance(seconds)


async def test_what_is_edited_once_is_put_right_at_once(
    operator: Operator, cluster: FakeCluster
) -> None:
    for _ in range(AT_ONCE):
        edit(cluster)
        operator.observe()
        await operator.work_until_idle()
        assert spec(cluster)["mode"] == "Static"
    assert await stalled(operator, cluster) == []


async def test_a_webhook_that_changes_each_write_is_told_and_written_less_and_less(
    operator: Operator, cluster: FakeCluster
) -> None:
    cluster.webhook = change
    operator.add_pod("a")
    before = cluster.writes
    await pass_time(operator, 64)
    assert await stalled(operator, cluster) == [("node-1", "AssignmentContested")]
    assert 4 <= cluster.writes - before <= 10
    before = cluster.writes
    await pass_time(operator, 10 * LONGEST_SECONDS)
    assert 8 <= cluster.writes - before <= 11


async def test_it_is_over_when_the_webhook_is_gone(
    operator: Operator, cluster: FakeCluster
) -> None:
    cluster.webhook = change
    operator.add_pod("a")
    await pass_time(operator, 30)
    cluster.webhook = lambda wire: wire
    await pass_time(operator, LONGEST_SECONDS)
    assert spec(cluster)["mode"] == "Static"
    await pass_time(operator, FORGET_SECONDS)
    assert await stalled(operator, cluster) == []
    edit(cluster)
    operator.observe()
    await pass_time(operator, 0)
    assert spec(cluster)["mode"] == "Static"


async def test_a_controller_that_undoes_each_write_is_told_and_answered_less_and_less(
    operator: Operator, cluster: FakeCluster
) -> None:
    before = cluster.writes
    for _ in range(600):
        if spec(cluster)["mode"] == "Static":
            edit(cluster)
        operator.observe()
        await pass_time(operator, 0.1)
    assert await stalled(operator, cluster) == [("node-1", "AssignmentContested")]
    assert 4 <= cluster.writes - before <= 10


async def test_a_deleted_assignment_is_made_again_at_once_but_not_without_end(
    operator: Operator, cluster: FakeCluster
) -> None:
    for _ in range(AT_ONCE + 1):
        cluster.assignments.pop("node-1", None)
        operator.observe()
        await pass_time(operator, 0)
    assert cluster.assignments == {}
    await pass_time(operator, 2)
    assert "node-1" in cluster.assignments
