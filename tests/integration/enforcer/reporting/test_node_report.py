"""An enforcer reports into the NodeReport while there is one: with a real API server."""

import uuid

import pytest

from numapin_client.resources import NODE_REPORTS, NODE_TOPOLOGIES
from numapin_lab.node.played_kubelet import Kubelet, Pod
from support.real.enforcer_node import Node
from support.real.kernel_cgroups import cpus_of, write_cpus
from support.real.reporting.own_objects import OwnObjects, line, spec_of_lines
from support.real.sampled_cpus import sampled
from support.real.waiting import eventually


async def test_a_new_node_is_reported_in_its_own_objects(
    node: Node, objects: OwnObjects, reporting: str
) -> None:
    assert cpus_of(reporting) == "1"
    found = objects.report
    assert found["enforced"] == found["observed"]
    assert found.keys().isdisjoint({"differences", "notRunning", "topology", "lastPassTime"})
    assert objects.topology["numaNodes"]
    assert objects.old_status == {}


async def test_what_is_not_as_its_line_says_is_named(
    objects: OwnObjects, kubelet: Kubelet, reporting: str, pod: tuple[Pod, str]
) -> None:
    absent = str(uuid.uuid4())
    lines = [line(pod[0].uid, "1", 1), line(absent, "0", 2).replace("cpus=0 ", "exclusive=false ")]
    lines[1] = lines[1].replace("exclusive=false ", "mems=0 ")
    objects.replace(spec_of_lines(*lines, shared="0"))
    await eventually(lambda: objects.report.get("notRunning") == [absent], "what does not run")
    assert objects.has_exclusive(2)


@pytest.mark.parametrize(
    "second",
    ["x" * 16_000, "\u0000\u0001 \ud7ff", "a/b c memory=0-99999999:1 uid=u", "a/b c cpus=1 uid=u2"],
    ids=["no line", "control characters", "a range", "the same CPU"],
)
async def test_damaged_lines_leave_the_last_assignment_in_force(
    objects: OwnObjects, reporting: str, pod: tuple[Pod, str], second: str
) -> None:
    lines = (line(pod[0].uid, "1", 1), second)
    with sampled(reporting) as seen:
        objects.replace(spec_of_lines(*lines, shared="0"))
        await eventually(lambda: objects.observes(2), "the refusal")
    status, reason, message = objects.ready()
    assert (status, reason) == ("False", "InvalidAssignment")
    assert message.startswith("spec.assigned[1]: ")
    assert objects.report["enforced"]["generation"] == 1
    assert objects.report["pools"]["exclusive"] == "1"
    assert seen == {"1"}


async def test_a_topology_that_others_edit_is_written_again(
    objects: OwnObjects, reporting: str
) -> None:
    before = objects.topology
    await objects.edit(NODE_TOPOLOGIES, {"numaNodes": [], "offline": "7"})
    await eventually(lambda: objects.topology == before, "the hardware again")


async def test_a_restart_writes_nothing_new_and_counts_on(
    node: Node, objects: OwnObjects, reporting: str, quick_disk: dict[str, str]
) -> None:
    write_cpus(reporting, "0")
    await eventually(lambda: objects.report.get("driftCount") == 1, "the count")
    await eventually(lambda: objects.report.get("runtime"), "the runtime")
    await eventually(objects.is_fine, "the runtime to have the CPUs again")
    before, version = objects.report, objects.version()
    with sampled(reporting) as seen:
        await node.stop()
        await node.start(**quick_disk)
        await eventually(lambda: node.probe("readyz")[0] == 200, "/readyz")
        found = await objects.reports_after(version)
    assert seen == {"1"}
    assert objects.report == before
    assert found == []


async def test_the_mark_of_the_operator_goes_when_the_enforcer_is_back(
    objects: OwnObjects, reporting: str
) -> None:
    conditions = objects.report["conditions"]
    marked = [
        one | ({"status": "Unknown", "reason": "EnforcerSilent"} if one["type"] == "Ready" else {})
        for one in conditions
    ]
    version = objects.version()
    await objects.edit(NODE_REPORTS, {"conditions": marked})
    await eventually(objects.is_fine, "the enforcer's word")
    found = await objects.reports_after(version)
    ready = [next(c for c in one["conditions"] if c["type"] == "Ready") for one in found]
    assert [one["status"] for one in ready] == ["Unknown", "True"]
