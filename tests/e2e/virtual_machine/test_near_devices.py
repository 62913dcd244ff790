"""CPUs, memory and huge pages beside the devices of a real kubelet, on two NUMA nodes.

8 CPUs: cores 0-1, 2-3 on NUMA node 0, 4-5, 6-7 on NUMA node 1; core 0-1 is reserved. Each NUMA node
has one GPU; the network card is beside NUMA node 0.
"""

import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from numapin_api.cpuset import CpuSet
from numapin_api.hardware.restore import restore_topology
from numapin_api.names import REQUIRE_NEAR_ANNOTATION
from numapin_lab.devices.devices import Device
from numapin_lab.devices.guest import GuestDriver, GuestPlugin, share_sockets
from numapin_lab.devices.slices import Json, claim, device_class, resource_slice, with_claim
from numapin_lab.lifecycle import LabFolder
from numapin_lab.running_lab import pod
from numapin_lab.vm.running_lab import RunningVmLab
from support.real.virtual_node import vm_up
from support.suite.left_out import BEFORE_RELEASE, rounds

pytestmark = pytest.mark.timeout(1800)  # for a machine with much else to do

EXAMPLES = Path(__file__).parents[3] / "examples" / "devices"
GPU, NIC = "nvidia.com/gpu", "intel.com/sriov"
DRIVER = "gpu.nvidia.com"
NUMA, ROOT = "resource.kubernetes.io/numaNode", "resource.kubernetes.io/pcieRoot"
CPUS_OF = {"0": CpuSet.parse("2-3"), "1": CpuSet.parse("4-7")}
FREE = "/sys/devices/system/node/node{}/hugepages/hugepages-2048kB/{}"
PAGES = 16
FIRST_ACT = "grep _allowed_list /proc/self/status; echo device $NUMAPIN_LAB_DEVICES"
EVERYWHERE = "0-1"
"""What a container prints that the start gate let go: on a busy machine answers come too late."""

BOUND = f"while grep -q 'Mems_allowed_list:[[:space:]]*{EVERYWHERE}$' /proc/self/status; do :; done"
LINE = re.compile(r"stdout F (\S+?):?\s+(\S+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def node(vm_lab: LabFolder) -> Iterator[RunningVmLab]:
    """The node with its devices, and the policy of the examples."""
    lab = vm_up(vm_lab)
    for numa_node in CPUS_OF:
        lab.write(FREE.format(numa_node, "nr_hugepages"), str(PAGES))
    share_sockets(lab.machine)
    GuestPlugin(lab.machine, GPU).start(Device("n0", (0,)), Device("n1", (1,)))
    GuestPlugin(lab.machine, NIC).start(Device("i0", (0,)))
    GuestDriver(lab.machine, DRIVER).start()
    lab.restart_kubelet()
    lab.eventually(lambda: offered(lab), ["2", "1"])
    wanted = yaml.safe_load((EXAMPLES / "policy.yaml").read_text())
    wanted["spec"] |= {"reserved": {"cpus": "0-1"}, "releaseDelay": "0s", "startTimeout": "1500ms"}
    lab.apply(wanted)
    lab.wait_in_force()
    lab.eventually(lambda: reported(lab), {(GPU, "0"), (GPU, "1"), (NIC, "0")})
    yield lab
    lab.clear()


def offered(lab: RunningVmLab) -> list[str]:
    found = lab.cluster.api.get(f"/api/v1/nodes/{lab.node}")["status"]["allocatable"]
    return [found.get(resource) for resource in (GPU, NIC)]


def devices(lab: RunningVmLab) -> dict[str, Any]:
    assignment = lab.assignment()
    found = assignment.status.devices if assignment and assignment.status else None
    return found.to_wire() if found else {}


def reported(lab: RunningVmLab) -> set[tuple[str, str]]:
    return {(one["resource"], one["numaNodes"]) for one in devices(lab).get("resources", ())}


def free_pages(lab: RunningVmLab) -> list[int]:
    files = [FREE.format(numa_node, "free_hugepages") for numa_node in CPUS_OF]
    found = lab.read(*files)
    return [int(found[file]) for file in files]


def said(lab: RunningVmLab, name: str, container: str = "main") -> dict[str, str]:
    """What a container printed first, by its first word."""
    log = lab.machine(f"cat /run/pods/default_{name}_*/{container}/0.log")
    return dict(LINE.findall(log))


def has_taken(lab: RunningVmLab, name: str) -> bool:
    return said(lab, name).get("taken") == "all"


def beside_device(name: str) -> dict[str, Any]:
    """A pod with a device that takes 8 MiB of huge pages with its first instructions."""
    script = f"{FIRST_ACT}; {BOUND}; fallocate -l 8M /pages/taken && echo taken all; sleep 1000000"
    body = pod(name, ("sh", "-c", script), cpu="1")
    container = body["spec"]["containers"][0]
    for amounts in container["resources"].values():
        amounts |= {"hugepages-2Mi": "8Mi", GPU: "1"}
    container["volumeMounts"] = [{"name": "pages", "mountPath": "/pages"}]
    body["spec"]["volumes"] = [{"name": "pages", "emptyDir": {"medium": "HugePages-2Mi"}}]
    return body


def held(body: dict[str, Any]) -> dict[str, Any]:
    """The pod, whose sandbox waits for a ConfigMap of its name: until then it is never too late."""
    name, volumes = body["metadata"]["name"], body["spec"].setdefault("volumes", [])
    volumes.append({"name": "held", "configMap": {"name": name}})
    mounts = body["spec"]["containers"][0].setdefault("volumeMounts", [])
    mounts.append({"name": "held", "mountPath": "/held"})
    return body


def run(lab: RunningVmLab, *bodies: dict[str, Any]) -> None:
    """Run pods whose devices are reported before their sandboxes are made, however busy it is."""
    names = {body["metadata"]["name"] for body in bodies}
    lab.apply(*map(held, bodies))
    lab.eventually(lambda: {one.pod for one in lab.wait_in_force().spec.containers}, names)
    let_start(lab, *names)


def let_start(lab: RunningVmLab, *names: str) -> None:
    """Return when pods run that were held."""
    for name in names:
        lab.kubectl("create", "configmap", name)
    lab.wait_running(*names)
    lab.delete("configmap", *names)


def test_cpus_memory_and_huge_pages_follow_the_device(node: RunningVmLab) -> None:
    """Before a release the pods are not held, so that device and CPUs are chosen amid a start."""
    begun_there, is_hurried = 0, BEFORE_RELEASE in os.environ
    for turn in range(turns := rounds(1, before_release=25)):
        names = (f"left-{turn}", f"right-{turn}")
        if is_hurried:
            node.apply(*map(beside_device, names))
            node.wait_running(*names)
        else:
            run(node, *map(beside_device, names))
        for name in names:
            node.eventually(partial(has_taken, node, name), True)
            words = said(node, name)
            numa_node = words["device"].removeprefix("n")
            assert numa_node_of(node, name, "main") == numa_node, (words, node.events(name))
            assert words["Mems_allowed_list"] in {numa_node, EVERYWHERE}
            begun_there += words["Mems_allowed_list"] == numa_node
        assert free_pages(node) == [PAGES - 4, PAGES - 4]
        node.kubectl("delete", "pod", *names, "--grace-period=0", "--force")
        node.eventually(lambda: free_pages(node), [PAGES, PAGES])
    assert begun_there == 2 * turns or not is_hurried


def example(name: str) -> list[dict[str, Any]]:
    """The objects of an example; the name of its disk is that of this machine."""
    text = (EXAMPLES / f"{name}.yaml").read_text().replace("block/nvme0n1", "block/vda")
    return list(yaml.safe_load_all(text))


def numa_node_of(lab: RunningVmLab, name: str, container: str) -> str:
    """The NUMA node of a container with CPUs of its own, by the kernel."""

    def found() -> tuple[str, str]:
        group, _ = lab.look().of(lab.container_id(name, container))
        return group.mems_effective, group.cpus_effective

    lab.wait(lambda: found()[0] in CPUS_OF, f"{name}/{container} to be on one NUMA node")
    mems, cpus = found()
    assert CpuSet.parse(cpus) <= CPUS_OF[mems]
    return mems


def test_a_model_server_and_its_sidecar_run_beside_the_gpu(node: RunningVmLab) -> None:
    run(node, *example("gpu-inference"))
    (row,) = devices(node)["containers"]
    assert (row["container"], row["resource"]) == ("server", GPU)
    found = {numa_node_of(node, "inference", one) for one in ("server", "tokenizer")}
    assert found == {row["numaNodes"]}
    node.delete("pod", "inference")


def test_packets_are_processed_beside_the_network_card(node: RunningVmLab) -> None:
    run(node, *example("dpdk"))
    numa_node = numa_node_of(node, "forwarder", "dpdk")
    (row,) = devices(node)["containers"]
    assert (row["resource"], row["numaNodes"]) == (NIC, numa_node)
    node.eventually(lambda: sum(free_pages(node)), 2 * PAGES - 8)
    if said(node, "forwarder", "dpdk")["Mems_allowed_list"] == numa_node:
        assert free_pages(node)[int(numa_node)] == PAGES - 8
    node.delete("pod", "forwarder")
    node.eventually(lambda: free_pages(node), [PAGES, PAGES])


def test_a_database_runs_beside_its_disk(node: RunningVmLab) -> None:
    node.apply(*example("database"))
    node.wait_running("database")
    assert numa_node_of(node, "database", "engine") == "1"
    node.delete("pod", "database")


def publish_gpus(lab: RunningVmLab) -> dict[str, str]:
    """Have the driver publish its devices, one of which says no more than its root complex.

    Returns:
        The NUMA node of each by its name, which is an attribute too.
    """
    status = lab.wait_in_force().status
    assert status is not None
    assert status.topology is not None
    roots = {str(one.numa_nodes): one.name for one in restore_topology(status.topology).pci_roots}
    places: Json = {f"gpu-{numa_node}": {NUMA: {"int": int(numa_node)}} for numa_node in CPUS_OF}
    places["gpu-root"] = {ROOT: {"string": roots["1"]}}
    gpus = {name: place | {"name": {"string": name}} for name, place in places.items()}
    lab.apply(device_class(DRIVER), resource_slice(DRIVER, lab.node, gpus))
    return {"gpu-1": "1", "gpu-0": "0", "gpu-root": "1"}


def test_cpus_and_memory_follow_the_device_of_a_claim(node: RunningVmLab) -> None:
    """The scheduler allocates it, the kubelet has the driver prepare it."""
    places = publish_gpus(node)
    for name, numa_node in places.items():
        node.apply(claim(name, DRIVER, f'device.attributes["{DRIVER}"].name == "{name}"'))
        script = f"{FIRST_ACT}; sleep 1000000"
        node.apply(with_claim(pod(name, ("sh", "-c", script), cpu="1"), name))
        node.wait_running(name)
        assert numa_node_of(node, name, "main") == numa_node, node.events(name)
        assert said(node, name)["Mems_allowed_list"] in {numa_node, EVERYWHERE}
    node.delete("pod", *places)
    node.delete("resourceclaims", *places)


def test_training_runs_beside_the_gpu_of_its_claim(node: RunningVmLab) -> None:
    places = publish_gpus(node)
    node.apply(*example("gpu-claim"))
    node.wait_running("training")
    status = node.kubectl.get("resourceclaims", "one-gpu")["status"]
    (result,) = status["allocation"]["devices"]["results"]
    assert numa_node_of(node, "training", "trainer") == places[result["device"]]
    node.delete("pod", "training")
    node.delete("resourceclaims", "one-gpu")


def refused(lab: RunningVmLab) -> list[tuple[str, str]]:
    return [(one.pod, one.reason) for one in lab.wait_in_force().spec.refused]


def test_a_pod_whose_device_has_no_room_beside_it_is_refused(node: RunningVmLab) -> None:
    """The only device is beside NUMA node 0, whose CPUs another pod has."""
    owner, name = pod("owner", cpu="2"), "without-room"
    owner["metadata"]["annotations"] = {REQUIRE_NEAR_ANNOTATION: "numa/0"}
    node.apply(owner)
    node.wait_running("owner")
    assert numa_node_of(node, "owner", "main") == "0"
    body = pod(name, ("sh", "-c", f"{FIRST_ACT}; sleep 1000000"), cpu="1")
    for amounts in body["spec"]["containers"][0]["resources"].values():
        amounts[NIC] = "1"
    node.apply(held(body))
    node.eventually(lambda: refused(node), [(name, "TopologyAffinityError")])
    let_start(node, name)
    node.eventually(lambda: said(node, name).get("device"), "i0")
    assert refused(node) == [(name, "TopologyAffinityError")]
