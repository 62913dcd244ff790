"""How often the enforcer writes the status, by every version of the object that was stored."""

import json
import uuid
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from numapin_client.client import Source, connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import NODE_ASSIGNMENTS
from numapin_client.transport.connection import Request
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.node.played_kubelet import Kubelet
from support.real.enforcer_node import Node, assigned, spec
from support.real.waiting import eventually

Json = dict[str, Any]


async def statuses_after(plane: ControlPlane, before: Json) -> list[Json]:
    """The status of each version after that one, by a watch that begins there."""
    name, version = before["metadata"]["name"], before["metadata"]["resourceVersion"]
    source = Source(NODE_ASSIGNMENTS, field_selector=f"metadata.name={name}")
    asked = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "2"}
    async with connect(kubeconfig_login(str(plane.kubeconfig))) as api:
        request = Request("GET", source.path, source.params | asked)
        async with api.connection.stream(request) as response:
            lines = (await response.read()).splitlines()
    return [json.loads(line)["object"]["status"] for line in lines]


@pytest.fixture
def quick_disk() -> Iterator[str]:
    """A state folder in memory: on a busy disk a status may not wait for the copy to be saved."""
    with TemporaryDirectory(dir="/dev/shm") as folder:
        yield folder


async def until_idle(node: Node) -> None:
    """Wait until there is nothing left to report."""
    await eventually(lambda: node.in_force() and node.status.get("runtime"), "the first status")


async def test_the_cpus_of_a_container_that_runs_cost_one_write_of_the_status(
    node: Node, kubelet: Kubelet, contract: ControlPlane, quick_disk: str
) -> None:
    pod = await kubelet.run_pod("exclusive")
    await kubelet.run(pod, "main")
    node.assign(spec())
    await node.start(**{"state-dir": quick_disk})
    await until_idle(node)
    before = node.assign(spec(assigned(pod.uid, "main", "1"), shared="0"))
    await eventually(node.reports_exclusive, "the container to be reported exclusive")
    (status,) = await statuses_after(contract, before)
    assert status["observedGeneration"] == before["metadata"]["generation"]
    assert [one["exclusive"] for one in status["containers"]] == [True]
    assert status["conditions"][0]["status"] == "True"


async def test_a_container_that_starts_later_is_never_reported_as_sharing_its_cpus(
    node: Node, kubelet: Kubelet, contract: ControlPlane, quick_disk: str
) -> None:
    """A write says that the spec is in force, one that the pod runs, and one the container."""
    uid = str(uuid.uuid4())
    node.assign(spec())
    await node.start(**{"state-dir": quick_disk})
    await until_idle(node)
    before = node.assign(spec(assigned(uid, "main", "1"), shared="0"))
    await eventually(node.in_force)
    pod = await kubelet.run_pod("exclusive", uid=uid)
    await kubelet.run(pod, "main")
    await eventually(node.reports_exclusive, "the container to be reported exclusive")
    found = await statuses_after(contract, before)
    seen = [(one["running"], [each["exclusive"] for each in one["containers"]]) for one in found]
    assert seen in ([([], []), ([uid], []), ([uid], [True])], [([], []), ([uid], [True])])
