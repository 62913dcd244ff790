"""The kubelet's answers with what containers have of numapin.

The kubelet answers with CPUs and memory where its own managers give them (policy static); what it
has said stays. Does no I/O.
"""

from collections.abc import Iterable

from numapin_enforcer.lister.in_force import Given, InForce
from numapin_enforcer.runtime.generated import podresources_v1_pb2 as pb

_NONE = Given()


def merge_pods(pods: Iterable[pb.PodResources], ours: InForce) -> None:
    """Add to each container what it has.

    Containers without exclusive CPUs have none here, as in the kubelet's answer.
    Source: Kubernetes v1.36, pkg/kubelet/apis/podresources/server_v1.go, `getContainerResources`.
    """
    for pod in pods:
        for container in pod.containers:
            name = pod.namespace, pod.name, container.name
            _merge_container(container, ours.given.get(name, _NONE))


def merge_allocatable(answer: pb.AllocatableResourcesResponse, ours: InForce) -> None:
    """Add the CPUs that containers can get, whether or not they have them.

    Source: Kubernetes v1.36, cpumanager, `staticPolicy.GetAllocatableCPUs`.
    """
    if not answer.cpu_ids:
        answer.cpu_ids.extend(sorted(ours.allocatable))


def _merge_container(container: pb.ContainerResources, given: Given) -> None:
    if not container.cpu_ids:
        container.cpu_ids.extend(sorted(given.cpus))
    if container.memory:
        return
    for block in given.memory:
        nodes = [pb.NUMANode(ID=node) for node in block.numa_nodes]
        topology = pb.TopologyInfo(nodes=nodes)
        container.memory.add(memory_type=block.resource, size=block.bytes, topology=topology)
