"""How many writes of the NodeReport a placed pod costs, by every version that was stored."""

import asyncio
import uuid

from numapin_enforcer.status.publishing.hold import HOLD_SECONDS
from numapin_lab.node.played_kubelet import Kubelet, Pod
from support.real.enforcer_node import Node
from support.real.reporting.own_objects import OwnObjects, line, spec_of_lines
from support.real.waiting import eventually


async def test_a_container_that_starts_after_its_assignment_costs_one_write(
    node: Node, objects: OwnObjects, kubelet: Kubelet, quick_disk: dict[str, str]
) -> None:
    uid = str(uuid.uuid4())
    await idle(node, objects, quick_disk)
    version = objects.version()
    objects.replace(spec_of_lines(line(uid, "1", 2), shared="0"))
    await asyncio.sleep(HOLD_SECONDS / 6)
    made = await kubelet.run_pod("exclusive", uid=uid)
    await kubelet.run(made, "main")
    await eventually(lambda: objects.has_exclusive(2), "the report")
    (found,) = await objects.reports_after(version)
    assert "notRunning" not in found


async def test_a_container_that_runs_costs_one_write(
    node: Node,
    objects: OwnObjects,
    pod: tuple[Pod, str],
    quick_disk: dict[str, str],
) -> None:
    await idle(node, objects, quick_disk)
    version = objects.version()
    objects.replace(spec_of_lines(line(pod[0].uid, "1", 2), shared="0"))
    await eventually(lambda: objects.has_exclusive(2), "the report")
    assert len(await objects.reports_after(version)) == 1


async def test_a_container_that_never_starts_costs_one_write(
    node: Node, objects: OwnObjects, quick_disk: dict[str, str]
) -> None:
    uid = str(uuid.uuid4())
    await idle(node, objects, quick_disk)
    version = objects.version()
    objects.replace(spec_of_lines(line(uid, "1", 2), shared="0"))
    await eventually(lambda: objects.observes(2), "the report")
    (found,) = await objects.reports_after(version)
    assert found["notRunning"] == [uid]


async def idle(node: Node, objects: OwnObjects, options: dict[str, str]) -> None:
    """Start the enforcer of a node without lines, and wait until all is reported."""
    objects.create()
    objects.replace(spec_of_lines())
    await node.start(**options)
    await eventually(lambda: objects.observes(1) and objects.is_fine(), "the first report")
    await eventually(lambda: objects.report.get("runtime"), "the runtime")
