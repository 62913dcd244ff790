"""A node with the objects that its operator creates beside the NodeAssignment."""

from collections.abc import Iterator
from tempfile import TemporaryDirectory

import pytest

from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.node.played_kubelet import Kubelet, Pod
from support.real.enforcer_node import Node
from support.real.reporting.own_objects import OwnObjects, line, spec_of_lines
from support.real.waiting import eventually


@pytest.fixture
def objects(node: Node, contract: ControlPlane) -> OwnObjects:
    return OwnObjects(node, contract)


@pytest.fixture
def quick_disk() -> Iterator[dict[str, str]]:
    """A state folder in memory: on a busy disk a report may not wait for the copy to be saved."""
    with TemporaryDirectory(dir="/dev/shm") as folder:
        yield {"state-dir": folder}


@pytest.fixture
async def pod(kubelet: Kubelet) -> tuple[Pod, str]:
    """A pod whose container runs, and that container's cgroup."""
    made = await kubelet.run_pod("exclusive")
    return made, f"{made.cgroup}/{await kubelet.run(made, 'main')}"


@pytest.fixture
async def reporting(
    node: Node, objects: OwnObjects, pod: tuple[Pod, str], quick_disk: dict[str, str]
) -> str:
    """A new node whose operator writes lines; the cgroup with CPU 1."""
    objects.create()
    objects.replace(spec_of_lines(line(pod[0].uid, "1", 1), shared="0"))
    await node.start(**quick_disk)
    await eventually(objects.has_exclusive, "the report")
    return pod[1]
