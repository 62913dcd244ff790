"""The object of each node is what it should be, against the fake API server."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_client.errors import ConnectionFailedError, ForbiddenError
from numapin_client.resources import Key
from numapin_operator.annotation.denied import DENIED_SECONDS
from numapin_operator.noderesourcetopology.publisher import (
    AHEAD_SECONDS,
    NO_KIND,
    NO_RIGHT,
    NOT_ENABLED,
    SWEEP_SECONDS,
    NoPublisher,
    Publisher,
)
from numapin_operator.observe.cache import ClusterState
from numapin_operator.shards.division import Portion, shard_of
from support.fakes.publishing.published_node import PUBLISH, Scene, both, working
from support.real.waiting import running
from support.values.operator import (
    assignment_view,
    pod_view,
    policy_view,
)

DENIED = ForbiddenError(
    "POST a",
    403,
    {"reason": "Forbidden", "message": 'user cannot create resource "x" in API group "y"'},
)


@pytest.fixture
async def scene() -> Any:
    made = Scene()
    async with working(made):
        yield made


async def test_it_is_created_changed_and_deleted(scene: Scene) -> None:
    await scene.settle()
    assert scene.object["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "numapin"}
    assert scene.object["metadata"]["ownerReferences"][0]["uid"] == "uid-node-1"
    before = scene.available()
    scene.assign("a")
    await scene.settle(1)
    assert sum(map(int, scene.available())) == sum(map(int, before)) - 1
    scene.govern(PUBLISH | {"publish": {"nodeResourceTopology": "None"}})
    await scene.settle(1)
    assert scene.object is None
    assert scene.cluster.topology_writes == 3


async def test_nothing_is_written_if_nothing_has_changed(scene: Scene) -> None:
    await scene.settle()
    for _ in range(5):
        scene.publisher.tell("node-1")
        await scene.settle(2)
    await scene.settle(2 * SWEEP_SECONDS)
    scene.publisher = scene.another()
    async with working(scene):
        scene.publisher.tell("node-1")
        await scene.settle(2)
    assert scene.cluster.topology_writes == 1


async def test_a_node_whose_pods_come_and_go_is_written_once_a_second_on_average(
    scene: Scene,
) -> None:
    for at in range(600):
        scene.assign(*(["a"] if at % 2 else []))
        await scene.settle(0.1)
    assert 60 <= scene.cluster.topology_writes <= 60 + AHEAD_SECONDS + 1
    await scene.settle(AHEAD_SECONDS + 1)
    expected = scene.available()
    scene.assign("a")
    await scene.settle(1)
    assert scene.available() == expected


async def test_what_a_pod_was_given_is_written_at_once_and_all_else_waits(scene: Scene) -> None:
    await scene.settle(1)
    given = []
    for cpus in ("2", "2-3", "2-4"):
        scene.assign("a", cpus=cpus)
        await scene.settle()
        given.append(scene.available())
    assert len({tuple(one) for one in given}) == 3
    assert scene.cluster.topology_writes == 4
    for _ in range(3):
        scene.assign()
        await scene.settle(0.3)
    assert (scene.available(), scene.cluster.topology_writes) == (given[-1], 4)
    await scene.settle(2.2)
    assert scene.available() not in given
    assert scene.cluster.topology_writes == 5


async def test_what_changes_during_a_write_waits_for_its_second(scene: Scene) -> None:
    patch = scene.cluster.patch_resource_topology

    async def slow(body: Any) -> Any:
        scene.assign()
        return await patch(body)

    await scene.settle(1)
    scene.cluster.patch_resource_topology = slow  # type: ignore[method-assign]
    scene.assign("a")
    await scene.settle(0.5)
    assert scene.cluster.topology_writes == 2
    scene.cluster.patch_resource_topology = patch  # type: ignore[method-assign]
    await scene.settle(1)
    assert scene.cluster.topology_writes == 3


async def test_a_pod_that_begins_to_run_changes_the_fingerprint(scene: Scene) -> None:
    scene.state.counted = scene.publisher.tell
    await scene.settle(1)
    assert scene.object is not None
    key, said = Key("a", "default"), scene.object["attributes"]
    scene.state.put_pod(key, pod_view("a"))
    assert scene.object["attributes"] == said
    scene.state.put_pod(key, replace(pod_view("a"), counted=True))
    await scene.settle(1)
    assert scene.object["attributes"] != said


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(PUBLISH | {"mode": "None"}, id="mode-none"),
        pytest.param(PUBLISH | {"mode": "Audit"}, id="mode-audit"),
        pytest.param({"reserved": {"count": 2}}, id="not-said"),
        pytest.param(PUBLISH | {"nodeSelector": {"a": "b"}}, id="not-selected"),
    ],
)
async def test_it_goes_when_the_policy_does_not_say_it(scene: Scene, spec: dict[str, Any]) -> None:
    await scene.settle(1)
    scene.govern(spec)
    await scene.settle(1)
    assert scene.object is None


async def test_it_goes_with_its_node(scene: Scene) -> None:
    await scene.settle(1)
    scene.state.drop_node("node-1")
    scene.publisher.tell("node-1")
    await scene.settle(1)
    assert scene.object is None


async def test_one_that_an_earlier_leader_left_is_deleted(scene: Scene) -> None:
    await scene.settle(1)
    scene.publisher = Publisher(scene.cluster, scene.state, lambda _: None, scene.clock)
    async with working(scene):
        await scene.settle(1)
    assert scene.object is None


async def test_it_stays_while_the_policy_cannot_work_there(scene: Scene) -> None:
    await scene.settle(1)
    before = scene.object
    scene.govern(PUBLISH | {"reserved": {"cpus": "500"}})
    await scene.settle(1)
    assert scene.object == before


async def test_it_is_not_made_before_the_hardware_is_known() -> None:
    scene = Scene()
    scene.state.assignments.put(replace(assignment_view(), version=1000))
    async with working(scene):
        await scene.settle(1)
    assert scene.object is None
    assert not scene.cluster.topology_writes


async def test_one_that_was_deleted_is_made_again(scene: Scene) -> None:
    await scene.settle(1)
    scene.cluster.resource_topologies.clear()
    await scene.settle(SWEEP_SECONDS)
    assert scene.object is not None


async def test_without_the_kind_it_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.cluster.has_resource_topologies = False
    async with working(scene):
        for _ in range(20):
            scene.assign()
            await scene.settle(DENIED_SECONDS / 4)
        assert [one.message for one in caplog.records].count(NO_KIND) == 1
        scene.cluster.has_resource_topologies = True
        await scene.settle(2 * DENIED_SECONDS)
    assert scene.object is not None


async def test_without_the_right_it_is_said_once(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.cluster.failures = [DENIED] * 5
    for _ in range(5):
        await scene.settle(DENIED_SECONDS + 1)
    assert [one.message for one in caplog.records].count(NO_RIGHT) == 1
    await scene.settle(5 * DENIED_SECONDS)
    assert scene.object is not None


async def test_a_failed_request_is_made_again(scene: Scene) -> None:
    scene.cluster.failures = [ConnectionFailedError("GET", "refused") for _ in range(3)]
    await scene.settle(SWEEP_SECONDS)
    assert scene.object is not None


async def test_a_shard_leaves_the_nodes_of_others_alone(scene: Scene) -> None:
    await scene.settle(1)
    other = Portion(1 - shard_of("node-1", 2), 2)
    foreign = Publisher(scene.cluster, ClusterState(), lambda _: None, scene.clock, other)
    async with running(both(foreign)):
        await scene.settle(2 * SWEEP_SECONDS)
    assert scene.object is not None


def test_an_operator_that_does_not_publish_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    silent, asking = policy_view("a"), policy_view("b", PUBLISH)
    nobody = NoPublisher({"node-1": silent, "node-2": asking}.get)
    for _ in range(3):
        for node in ("node-1", "node-2", "node-3"):
            nobody.tell(node)
    assert [(one.message, one.__dict__["policy"]) for one in caplog.records] == [(NOT_ENABLED, "b")]
