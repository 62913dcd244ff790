"""CPUs, memory and huge pages beside the devices of a real kubelet, on two NUMA nodes.

8 CPUs: cores 0-1, 2-3 on NUMA node 0, 4-5, 6-7 on NUMA node 1; core 0-1 is reserved. Each NUMA node
has one device of each resource.
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
from numapin_lab.devices.devices import Device
from numapin_lab.devices.guest import GuestDriver, GuestPlugin, share_sockets
from numapin_lab.devices.slices import claim, device_class, resource_slice, with_claim
from numapin_lab.lifecycle import LabFolder
from numapin_lab.running_lab import pod
from numapin_lab.vm.running_lab import RunningVmLab
from support.real.virtual_node import vm_up
from support.suite.left_out import BEFORE_RELEASE, rounds

pytestmark = pytest.mark.timeout(1800)  # for a machine with much else to do

EXAMPLES = Path(__file__).parents[3] / "examples" / "devices"
GPU, NIC = "nvidia.com/gpu", "intel.com/sriov"
DRIVER = "gpu.example.com"
CPUS_OF = {"0": CpuSet.parse("2-3"), "1": CpuSet.parse("4-7")}
FREE = "/sys/devices/system/node/node{}/hugepages/hugepages-2048kB/{}"
PAGES = 16
TRIES = 5
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
    for resource in (GPU, NIC):
        one = GuestPlugin(lab.machine, resource)
        one.start(Device(f"{resource[0]}0", (0,)), Device(f"{resource[0]}1", (1,)))
    GuestDriver(lab.machine, DRIVER).start()
    lab.restart_kubelet()
    lab.eventually(lambda: offered(lab), ["2", "2"])
    wanted = yaml.safe_load((EXAMPLES / "policy.yaml").read_text())
    wanted["spec"] |= {"reserved": {"cpus": "0-1"}, "releaseDelay": "0s", "startTimeout": "1500ms"}
    lab.apply(wanted)
    lab.wait_in_force()
    lab.eventually(lambda: reported(lab), {(GPU, "0"), (GPU, "1"), (NIC, "0"), (NIC, "1")})
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


def test_cpus_memory_and_huge_pages_follow_the_device(node: RunningVmLab) -> None:
    begun_there = 0
    for turn in range(turns := rounds(2, before_release=25)):
        names = (f"left-{turn}", f"right-{turn}")
        node.apply(*map(beside_device, names))
        node.wait_running(*names)
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
    assert begun_there == 2 * turns or BEFORE_RELEASE not in os.environ


def example(name: str) -> dict[str, Any]:
    """A pod of the examples; the name of its disk is that of this machine."""
    text = (EXAMPLES / f"{name}.yaml").read_text().replace("block/nvme0n1", "block/vda")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


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
    node.apply(example("gpu-inference"))
    node.wait_running("inference")
    (row,) = devices(node)["containers"]
    assert (row["container"], row["resource"]) == ("server", GPU)
    found = {numa_node_of(node, "inference", one) for one in ("server", "tokenizer")}
    assert found == {row["numaNodes"]}
    node.delete("pod", "inference")


def test_packets_are_processed_beside_the_network_card(node: RunningVmLab) -> None:
    node.apply(example("dpdk"))
    node.wait_running("forwarder")
    numa_node = numa_node_of(node, "forwarder", "dpdk")
    (row,) = devices(node)["containers"]
    assert (row["resource"], row["numaNodes"]) == (NIC, numa_node)
    node.eventually(lambda: sum(free_pages(node)), 2 * PAGES - 8)
    if said(node, "forwarder", "dpdk")["Mems_allowed_list"] == numa_node:
        assert free_pages(node)[int(numa_node)] == PAGES - 8
    node.delete("pod", "forwarder")
    node.eventually(lambda: free_pages(node), [PAGES, PAGES])


def test_a_database_runs_beside_its_disk(node: RunningVmLab) -> None:
    node.apply(example("database"))
    node.wait_running("database")
    assert numa_node_of(node, "database", "engine") == "1"
    node.delete("pod", "database")


def test_cpus_and_memory_follow_the_device_of_a_claim(node: RunningVmLab) -> None:
    """The scheduler allocates it, the kubelet has the driver prepare it."""
    numa = "resource.kubernetes.io/numaNode"
    gpus = {f"gpu-{numa_node}": {numa: {"int": int(numa_node)}} for numa_node in CPUS_OF}
    node.apply(device_class(DRIVER), resource_slice(DRIVER, node.node, gpus))
    for numa_node in reversed(CPUS_OF):
        name, of = f"claims-{numa_node}", 'device.attributes["resource.kubernetes.io"].numaNode'
        node.apply(claim(name, DRIVER, f"{of} == {numa_node}"))
        script = f"{FIRST_ACT}; sleep 1000000"
        node.apply(with_claim(pod(name, ("sh", "-c", script), cpu="1"), name))
        node.wait_running(name)
        assert numa_node_of(node, name, "main") == numa_node, node.events(name)
        assert said(node, name)["Mems_allowed_list"] in {numa_node, EVERYWHERE}
    node.delete("pod", *(f"claims-{numa_node}" for numa_node in CPUS_OF))
    node.kubectl("delete", "resourceclaims", "--all", "--wait=false")


def refused(lab: RunningVmLab) -> list[str]:
    return [one.pod for one in lab.wait_in_force().spec.refused]


def was_late(lab: RunningVmLab, name: str) -> bool:
    """Whether a pod was placed before its node had reported its devices, as on a busy machine."""
    return any("chosen without" in (one.get("note") or one["message"]) for one in lab.events(name))


def is_decided(lab: RunningVmLab, name: str) -> bool:
    return was_late(lab, name) or refused(lab) == [name]


def device_of(lab: RunningVmLab, name: str) -> str:
    """The NUMA node of the device that the kubelet gave a pod."""
    lab.wait_running(name)
    lab.wait(lambda: "device" in said(lab, name), f"{name} to say where its device is")
    return said(lab, name)["device"].removeprefix("n")


def test_a_pod_whose_device_has_no_room_beside_it_is_refused(node: RunningVmLab) -> None:
    """Its device is on NUMA node 0, whose CPUs another pod has.

    The kubelet gives any device: a pod that got the one of NUMA node 1 keeps it from the next one.
    """
    node.apply(pod("owner", cpu="2"))
    node.wait_running("owner")
    assert numa_node_of(node, "owner", "main") == "0"
    for turn in range(TRIES):
        name = f"without-room-{turn}"
        node.apply(beside_device(name))
        if device_of(node, name) != "0":
            continue
        node.eventually(partial(is_decided, node, name), True)
        if not was_late(node, name):
            break
        node.delete("pod", name)
    (refusal,) = node.wait_in_force().spec.refused
    assert refusal.reason == "TopologyAffinityError"
