"""Devices of ResourceClaims: a real scheduler allocates them, a real kubelet has them prepared."""

from collections.abc import Iterator
from typing import Any

import pytest

from numapin_api.hardware.restore import restore_topology
from numapin_cli.main import main
from numapin_lab.cluster import Cluster
from numapin_lab.devices.process import DriverProcess
from numapin_lab.devices.slices import Json, claim, device_class, resource_slice, with_claim
from numapin_lab.running_lab import RunningLab, pod, policy

DRIVER = "gpu.example.com"
STANDARD = "resource.kubernetes.io"
NUMA, ROOT = f"{STANDARD}/numaNode", f"{STANDARD}/pcieRoot"
FIRST_ROOT = "pci0000:00"
GPUS: Json = {
    "gpu-0": {NUMA: {"int": 0}},
    "gpu-1": {NUMA: {"int": 7}},
    "gpu-2": {},
    "gpu-3": {ROOT: {"string": FIRST_ROOT}},
}
"""The node has NUMA node 0 alone: what the driver says of the second one is wrong."""

pytestmark = pytest.mark.from_source("the DRA driver is a process of the machine")


@pytest.fixture(scope="module")
def driver(cluster: Cluster) -> Iterator[DriverProcess]:
    made = DriverProcess(cluster.kubelet, DRIVER)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def node(lab: RunningLab, driver: DriverProcess) -> Iterator[RunningLab]:
    """A node whose driver has published its devices."""
    assert driver.daemon.pid() is not None
    lab.apply(device_class(DRIVER), resource_slice(DRIVER, lab.node, GPUS))
    lab.apply(policy(topology={"policy": "SingleNUMANode"}))
    yield lab
    lab.clear()
    lab.kubectl("delete", "resourceclaims", "--all", "--wait")
    lab.kubectl("delete", "resourceslices,deviceclasses", "--all")


def near(name: str, device: str) -> tuple[dict[str, Any], ...]:
    """A pod with a claim for one device of the driver, by its attribute."""
    of = f'device.attributes["{STANDARD}"]'
    has, has_root = f'"numaNode" in {of}', f'"pcieRoot" in {of}'
    wanted = {
        "gpu-0": f"{has} && {of}.numaNode == 0",
        "gpu-1": f"{has} && {of}.numaNode == 7",
        "gpu-2": f"!({has}) && !({has_root})",
        "gpu-3": has_root,
    }
    return claim(name, DRIVER, wanted[device]), with_claim(pod(name, cpu="1"), name)


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ("gpu-0", "1 gpu.example.com ({node}/gpu-0) on NUMA node 0, near its CPUs"),
        ("gpu-1", "1 gpu.example.com ({node}/gpu-1), near no NUMA node that is known"),
        ("gpu-2", "1 gpu.example.com ({node}/gpu-2), near no NUMA node that is known"),
    ],
)
def test_a_pod_with_a_claim_is_placed_at_once(
    node: RunningLab, capsys: pytest.CaptureFixture[str], device: str, said: str
) -> None:
    """Also if the driver names a NUMA node that the node does not have, or none."""
    node.apply(*near("one", device))
    node.wait_running("one")
    (entry,) = node.wait_in_force().spec.containers
    assert (entry.pod, str(entry.cpus)) == ("one", "1")
    assert "chosen without" not in notes(node, "one")
    assert said.format(node=node.node) in explained(node, "one", capsys)


def test_a_device_is_where_the_node_reports_its_root_complex(
    node: RunningLab, capsys: pytest.CaptureFixture[str]
) -> None:
    """A machine without PCI has none."""
    node.apply(*near("one", "gpu-3"))
    node.wait_running("one")
    status = node.wait_in_force().status
    assert status is not None
    assert status.topology is not None
    roots = {one.name: one.numa_nodes for one in restore_topology(status.topology).pci_roots}
    place = ", near no NUMA node that is known"
    if FIRST_ROOT in roots:
        place = f" on NUMA node {roots[FIRST_ROOT]}, near its CPUs"
    said = f"1 gpu.example.com ({node.node}/gpu-3){place}"
    assert said in explained(node, "one", capsys)


def explained(lab: RunningLab, name: str, capsys: pytest.CaptureFixture[str]) -> str:
    kubeconfig = str(lab.cluster.plane.kubeconfig)
    main(["explain", "pod", name, "-n", "default", "--kubeconfig", kubeconfig])
    return " ".join(capsys.readouterr().out.split())


def test_a_pod_is_placed_without_a_device_that_no_slice_has_and_told(node: RunningLab) -> None:
    """Two pods share the claim; the driver publishes nothing any more when the second one comes."""
    node.apply(claim("both", DRIVER), with_claim(pod("first", cpu="100m"), "both"))
    node.wait_running("first")
    node.kubectl("delete", "resourceslices", "--all")
    node.apply(with_claim(pod("second", cpu="1"), "both"))
    node.wait_running("second")
    node.eventually(lambda: [one.pod for one in node.wait_in_force().spec.containers], ["second"])
    without = f"no ResourceSlice has had its devices of {DRIVER}"
    node.eventually(lambda: without in notes(node, "second"), True)


def notes(lab: RunningLab, name: str) -> str:
    return " ".join(str(one.get("note") or one.get("message")) for one in lab.events(name))
