"""Machines, pods and policies that tests of placement are made of."""

from typing import Any

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import PodView, plan_node

GIB = 1 << 30
NO_UIDS: frozenset[str] = frozenset()
"""UIDs of pods whose cgroups still exist, where there are none."""


def machine(
    cpus: int = 8, threads: int = 2, numa_nodes: int = 1, memory_bytes: int = 16 * GIB
) -> Topology:
    """Cores of neighbouring siblings; a socket for each NUMA node, all of one size."""
    per_node = cpus // numa_nodes
    return Topology(
        cpus=tuple(
            Cpu(cpu, cpu // threads * threads, cpu // per_node, -1, cpu // per_node)
            for cpu in range(cpus)
        ),
        numa_nodes=tuple(NumaNode(node, memory_bytes) for node in range(numa_nodes)),
    )


def resources(cpu: str, memory: str = "64Mi", **others: str) -> dict[str, Any]:
    """Requests that equal their limits."""
    amounts = {"cpu": cpu, "memory": memory} | others
    return {"requests": amounts, "limits": amounts}


def pod_body(uid: str, cpu: str = "1") -> dict[str, Any]:
    """A Guaranteed Pod object with one container `c`, as a scenario has it."""
    containers = [{"name": "c", "resources": resources(cpu)}]
    return {"metadata": {"name": uid, "uid": uid}, "spec": {"containers": containers}}


def pod(name: str, *cpus: str, memory: str = "64Mi", **spec: Any) -> PodView:
    """A Guaranteed pod with a container c0, c1, .. for each CPU request; more fields in `spec`."""
    containers = [
        {"name": f"c{index}", "resources": resources(cpu, memory)} for index, cpu in enumerate(cpus)
    ]
    return parse_pod(
        {
            "metadata": {"name": name, "uid": f"uid-{name}"},
            "spec": {"containers": containers} | spec,
        }
    )


def policy(**fields: Any) -> CpuPolicySpec:
    """A policy that reserves CPU 0, unless `reserved` says otherwise."""
    return CpuPolicySpec.model_validate({"reserved": {"cpus": "0"}} | fields)


def granted_pod(name: str, *asked: tuple[str, str], **spec: Any) -> PodView:
    """A Guaranteed pod that runs: its kubelet has granted (CPUs, memory) to c0, c1, .. ."""
    amounts = {f"c{at}": {"cpu": cpu, "memory": memory} for at, (cpu, memory) in enumerate(asked)}
    return parse_pod(
        {
            "metadata": {"name": name, "uid": f"uid-{name}", "generation": 2},
            "spec": {
                "containers": [
                    {"name": each, "resources": {"requests": one, "limits": one}}
                    for each, one in amounts.items()
                ]
            }
            | spec,
            "status": {
                "containerStatuses": [
                    {"name": each, "allocatedResources": one} for each, one in amounts.items()
                ]
            },
        }
    )


def history(
    topology: Topology, spec: CpuPolicySpec, *pods_over_time: list[PodView]
) -> NodeAssignmentSpec:
    """The assignment after the pods have been so, one list after the other."""
    assignment: NodeAssignmentSpec | None = None
    for pods in pods_over_time:
        assignment = plan_node(topology, spec, assignment, pods, NO_UIDS).spec
    assert assignment is not None
    return assignment
