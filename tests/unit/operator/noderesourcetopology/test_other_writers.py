"""An object that another program writes is left alone and reported."""

import logging
from typing import Any

import pytest

from numapin_api import names
from numapin_operator.noderesourcetopology.publisher import FOREIGN, SWEEP_SECONDS
from support.fakes.publishing.published_node import PUBLISH, Scene, edit, working


@pytest.fixture
async def scene() -> Any:
    made = Scene()
    async with working(made):
        yield made


@pytest.mark.parametrize("labels", [{}, {names.MANAGED_BY_LABEL: names.MANAGED_BY}])
async def test_what_another_writes_is_left_alone_and_reported_once(
    scene: Scene, caplog: pytest.LogCaptureFixture, labels: dict[str, str]
) -> None:
    await scene.settle(1)
    writes = scene.cluster.topology_writes
    edit(scene, "nfd-topology-updater", labels=labels)
    theirs = scene.object
    with caplog.at_level(logging.WARNING):
        for at in range(4):
            scene.assign(*(["a"] if at % 2 == 0 else []))
            await scene.settle(SWEEP_SECONDS)
        scene.govern({"reserved": {"count": 2}})
        await scene.settle(SWEEP_SECONDS)
    assert (scene.object, scene.cluster.topology_writes) == (theirs, writes)
    said = [record for record in caplog.records if record.message == FOREIGN]
    assert [record.__dict__["writer"] for record in said] == ["nfd-topology-updater"]


async def test_the_node_is_planned_again_when_another_writer_comes_and_goes(scene: Scene) -> None:
    planned: list[tuple[str, str | None]] = []

    def note(node: str, **_: object) -> None:
        planned.append((node, scene.publisher.other_writer(node)))

    await scene.settle(1)
    scene.state.wake = note
    for _ in range(3):
        edit(scene, "nfd")
        await scene.settle(SWEEP_SECONDS)
    scene.cluster.resource_topologies.clear()
    await scene.settle(SWEEP_SECONDS)
    assert planned == [("node-1", "nfd"), ("node-1", None)]
    assert "zones" in scene.object


async def test_another_writer_concerns_nobody_until_the_policy_says_so(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    await scene.settle(1)
    scene.govern({"reserved": {"count": 2}})
    edit(scene, "nfd", labels={})
    await scene.settle(2 * SWEEP_SECONDS)
    assert scene.publisher.other_writer("node-1") is None
    assert FOREIGN not in caplog.messages
    scene.govern(PUBLISH)
    await scene.settle(1)
    assert scene.publisher.other_writer("node-1") == "nfd"
    assert FOREIGN in caplog.messages
    scene.govern({"reserved": {"count": 2}})
    await scene.settle(1)
    assert scene.publisher.other_writer("node-1") is None


async def test_labels_of_others_stay(scene: Scene) -> None:
    await scene.settle(1)
    edit(scene, names.OPERATOR_FIELD_MANAGER, labels={names.MANAGED_BY_LABEL: "numapin", "a": "b"})
    await scene.settle(SWEEP_SECONDS)
    assert scene.object["metadata"]["labels"]["a"] == "b"
    assert scene.object["zones"]
