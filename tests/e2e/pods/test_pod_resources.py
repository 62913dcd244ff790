"""The enforcer's answers beside those of the real kubelet, for the same pods and to an exporter."""

import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from grpclib.client import Channel
from grpclib.exceptions import GRPCError

from numapin_api.hardware.restore import restore_topology
from numapin_enforcer.runtime.generated import podresources_v1_pb2 as pb
from numapin_enforcer.runtime.generated.podresources_v1_grpc import PodResourcesListerStub
from numapin_lab.components.build import provide
from numapin_lab.components.catalog import TOPOLOGY_UPDATER
from numapin_lab.devices.devices import Device
from numapin_lab.devices.process import PluginProcess
from numapin_lab.running_lab import RunningLab, pod, policy
from support.real.operators.resource_topologies import install_kind, remove_kind
from support.real.waiting import eventually

pytestmark = pytest.mark.from_source("its enforcer has one more option")

NIC = "example.com/nic"
SIZES = "capacity", "allocatable", "available"
UPDATE_SECONDS = 120
UNKNOWN = pb.GetPodResourcesRequest(pod_name="unknown", pod_namespace="default")


@contextmanager
def served(lab: RunningLab) -> Iterator[Path]:
    """The enforcer answers on this socket."""
    usual = lab.agent("enforcer")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pod-resources" / "kubelet.sock"
        serving = replace(usual, options=(*usual.options, f"--serve-pod-resources={path}"))
        usual.stop()
        serving.start()
        serving.wait_ready()
        try:
            yield path
        finally:
            serving.stop()
            assert not path.exists()
            usual.start()
            usual.wait_ready()


async def call(path: Path, name: str, request: Any) -> Any:
    """One call, as a client of the kubelet makes it."""
    channel = Channel(path=str(path))
    try:
        return await getattr(PodResourcesListerStub(channel), name)(request)
    finally:
        channel.close()


async def listed(path: Path) -> dict[str, pb.PodResources]:
    """The pods of the default namespace."""
    answer = await call(path, "List", pb.ListPodResourcesRequest())
    return {one.name: one for one in answer.pod_resources if one.namespace == "default"}


async def refusal(path: Path) -> tuple[object, object]:
    """How a pod that does not exist is refused."""
    with pytest.raises(GRPCError) as refused:
        await call(path, "Get", UNKNOWN)
    return refused.value.status, refused.value.message


async def test_the_answers_are_the_kubelets_with_cpus(lab: RunningLab) -> None:
    theirs = lab.cluster.kubelet.pod_resources_socket
    lab.apply(policy())
    lab.wait_in_force()
    with served(lab) as ours:
        await eventually(ours.is_socket)
        lab.apply(pod("owner", cpu="1"), pod("neighbour"))
        lab.wait_running("owner", "neighbour")
        lab.wait_in_force()

        async def has_cpus() -> bool:
            return list((await listed(ours))["owner"].containers[0].cpu_ids) == [1]

        await eventually(has_cpus)
        found, without = await listed(ours), await listed(theirs)
        found["owner"].containers[0].ClearField("cpu_ids")
        assert found == without
        assert found.keys() == {"owner", "neighbour"}
        request = pb.GetPodResourcesRequest(pod_name="owner", pod_namespace="default")
        answer = await call(ours, "Get", request)
        assert answer.pod_resources.containers[0].cpu_ids == [1]
        assert await refusal(ours) == await refusal(theirs)
        node = await call(ours, "GetAllocatableResources", pb.AllocatableResourcesRequest())
        assert node.cpu_ids == [1], "CPU 0 is reserved"


def published(lab: RunningLab, socket: Path) -> dict[str, dict[str, list[int]]]:
    """Have NFD's topology updater ask a socket once, and publish what it makes of the answers.

    Returns:
        Capacity, allocatable and available of each resource, by the name of its zone.
    """
    options = {
        "podresources-socket": socket,
        "kubeconfig": lab.cluster.plane.kubeconfig,
        "kubelet-config-uri": f"file://{lab.cluster.kubelet.folder / 'config.yaml'}",
        "kubelet-state-dir": "",
        "sleep-interval": "1s",
        "port": 0,
    }
    program = str(provide([TOPOLOGY_UPDATER.name])[TOPOLOGY_UPDATER.name].path)
    command = [program, "-oneshot", *(f"-{name}={value}" for name, value in options.items())]
    environment = os.environ | {"NODE_NAME": lab.node, "KUBERNETES_NAMESPACE": "default"}
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=UPDATE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = lab.kubectl.get("noderesourcetopologies", lab.node)
    lab.kubectl("delete", "noderesourcetopologies", lab.node)
    return {
        zone["name"]: {one["name"]: [int(one[size]) for size in SIZES] for one in zone["resources"]}
        for zone in found["zones"]
    }


def reported(lab: RunningLab) -> dict[str, dict[str, list[int]]]:
    """The same, by the report of the node."""
    status = lab.wait_in_force().status
    assert status is not None
    assert status.topology is not None
    assert status.pools is not None
    assert status.devices is not None
    found = {}
    for node, cpus in restore_topology(status.topology).numa_cpus.items():
        allocatable = cpus - status.pools.reserved
        amounts = [len(cpus), len(allocatable), len(allocatable - status.pools.exclusive)]
        found[f"node-{node}"] = {"cpu": amounts}
        near = [one.count for one in status.devices.resources if node in one.numa_nodes]
        used = [one.count for one in status.devices.containers if node in one.numa_nodes]
        if near:
            found[f"node-{node}"][NIC] = [sum(near), sum(near), sum(near) - sum(used)]
    return found


@pytest.fixture
async def nics(lab: RunningLab) -> AsyncIterator[None]:
    """Two devices near NUMA node 0 and one near none, and the kind of objects that NFD writes."""
    plugin = PluginProcess(lab.cluster.kubelet, NIC)
    await install_kind(lab.cluster.plane)
    plugin.start(Device("n0", (0,)), Device("n1", (0,)), Device("n2"))
    yield
    plugin.kill()
    await remove_kind(lab.cluster.plane)


async def test_an_exporter_publishes_what_the_node_reports(lab: RunningLab, nics: None) -> None:
    theirs = lab.cluster.kubelet.pod_resources_socket
    lab.apply(policy())
    lab.wait_in_force()
    owner = pod("owner", cpu="1")
    for amounts in owner["spec"]["containers"][0]["resources"].values():
        amounts[NIC] = "1"
    with served(lab) as ours:
        await eventually(ours.is_socket)
        lab.apply(owner, pod("neighbour"))
        lab.wait_running("owner", "neighbour")
        lab.eventually(lambda: reported(lab)["node-0"].get(NIC), [2, 2, 1])
        lab.eventually(lab.reported_exclusive, [True])
        found, without = published(lab, ours), published(lab, theirs)
    assert found == reported(lab)
    assert found["node-0"]["cpu"][2] == found["node-0"]["cpu"][1] - 1, "owner has a CPU of its own"
    assert without["node-0"] == {NIC: [2, 2, 1]}, "the kubelet says nothing of CPUs"
