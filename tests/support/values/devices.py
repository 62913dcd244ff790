"""A node with NICs and GPUs, the pods that ask for them, and what they are given."""

from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import (
    KUBELET,
    Device,
    Node,
    PlacementError,
    PodView,
    numa_mask,
    resolve,
)
from support.values.placement import machine, policy

NIC = "example.com/nic"
GPU = "example.com/gpu"


def devices(*near: str) -> tuple[Device, ...]:
    """Devices d0, d1, .. with their NUMA nodes, such as `01`; `!` marks an unhealthy one."""
    return tuple(
        Device(f"d{number}", numa_mask(map(int, one.strip("!"))), not one.endswith("!"))
        for number, one in enumerate(near)
    )


def container(name: str, cpu: str = "1", restart: str = "", **asked: int) -> dict[str, Any]:
    """A Guaranteed container that asks for `nic` and `gpu`."""
    of_devices = {f"example.com/{kind}": str(count) for kind, count in asked.items()}
    amounts = {"cpu": cpu, "memory": "64Mi"} | of_devices
    made = {"name": name, "resources": {"requests": amounts, "limits": amounts}}
    return made | ({"restartPolicy": restart} if restart else {})


def pod_of(name: str, *containers: dict[str, Any], **spec: Any) -> PodView:
    """A pod; its containers named i0, i1, .. or s0, s1, .. are init containers and sidecars."""
    inits = [one for one in containers if one["name"][0] in "is"]
    apps = [one for one in containers if one["name"][0] == "c"]
    body = {"initContainers": inits, "containers": apps} | spec
    return parse_pod({"metadata": {"name": name, "uid": name}, "spec": body})


def node_of(alignment: str, *nics: str, scope: str = "Container", **fields: Any) -> Node:
    """Two NUMA nodes of 8 CPUs each, CPU 0 reserved, with these NICs."""
    spec = policy(topology={"policy": alignment, "scope": scope}, **fields)
    there = {NIC: devices(*nics), GPU: devices("0", "1")}
    return Node(resolve(machine(16, numa_nodes=2), spec, KUBELET), there)


def given(node: Node, asked: PodView) -> dict[str, str]:
    """The ids of each container's devices, and after a slash the NUMA nodes of its CPUs."""
    numa_cpus = node.policy.topology.numa_cpus
    found = {}
    for one in node.place(asked).containers:
        ids = ",".join(each for grant in one.devices for each in grant.ids)
        cpus = CpuSet.from_mask(one.cpus)
        where = (str(each) for each, there in numa_cpus.items() if not there.isdisjoint(cpus))
        found[one.name] = f"{ids}/{''.join(where)}"
    return found


def free(node: Node, resource: str) -> list[str]:
    """The ids of the devices that can be given."""
    assert node.devices is not None
    return [one.id for one in node.devices.free(resource)]


def refusal(node: Node, asked: PodView) -> tuple[str, str]:
    """Reason and message of a refusal; the node is as before."""
    before = node.shared, free(node, NIC), free(node, GPU)
    with pytest.raises(PlacementError) as refused:
        node.place(asked)
    assert (node.shared, free(node, NIC), free(node, GPU)) == before
    return refused.value.reason, str(refused.value)
