"""What a NodeAssignment's status says of containers, and how it names them."""

from typing import Annotated, Final

from pydantic import Field

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.hardware.limits import MAX_BYTES
from numapin_api.meta.derived import OfContainer
from numapin_api.meta.wire import WireModel

POD_UID_LENGTH: Final = 64
POD_UID_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"
PodUid = Annotated[str, Field(min_length=1, max_length=POD_UID_LENGTH, pattern=POD_UID_PATTERN)]
NAME_LENGTH: Final = 253
Name = Annotated[str, Field(min_length=1, max_length=NAME_LENGTH)]
SomeCpus = Annotated[CpuSet, Field(min_length=1)]


class PoolsInForce(WireModel):
    """The pools in force in the kernel."""

    reserved: CpuSet = Field(
        default=CpuSet(), description="CPUs that are never assigned exclusively."
    )
    shared: CpuSet = Field(
        default=CpuSet(), description="CPUs of all containers without exclusive CPUs."
    )
    exclusive: CpuSet = Field(
        default=CpuSet(), description="CPUs that are exclusive to one container each."
    )


class ContainerStatus(OfContainer, WireModel):
    """The state of one container of the spec, read from the kernel."""

    pod_uid: PodUid = Field(alias="podUID", description="The metadata.uid of the pod.")
    container: Name = Field(description="The name of the container.")
    cpus: CpuSet = Field(description="The CPUs that it may use, read from the kernel.")
    mems: MemSet = Field(
        default=MemSet(), description="The NUMA nodes that it may use, read from the kernel."
    )
    exclusive: bool = Field(
        default=False,
        description="True if, by the kernel's answer, processes run in its cgroup, it has all its "
        "CPUs, and no cgroup of another pod or container has any of them, nor has a container "
        "outside of the kubelet's cgroups that the runtime lists.",
    )


class KubeletContainer(OfContainer, WireModel):
    """The CPUs and the NUMA nodes that the kubelet itself has given to a container."""

    pod_uid: PodUid = Field(alias="podUID", description="The metadata.uid of the pod.")
    container: Name = Field(description="The name of the container.")
    cpus: CpuSet = Field(description="Its exclusive CPUs; if empty, it shares CPUs.")
    mems: MemSet = Field(
        default=MemSet(), description="The NUMA nodes that its memory is bound to; if empty, none."
    )


class ClaimedCpus(WireModel):
    """The CPUs that the DRA driver dra.cpu has given to a ResourceClaim."""

    claim_uid: PodUid = Field(
        alias="claimUID", description="The metadata.uid of the ResourceClaim."
    )
    cpus: SomeCpus = Field(description="Its CPUs.")


class UnboundMemory(WireModel):
    """Where the memory of a pod is that is not bound to NUMA nodes."""

    pod_uid: PodUid = Field(alias="podUID", description="The metadata.uid of the pod.")
    bytes: dict[str, Annotated[int, Field(ge=0, le=MAX_BYTES)]] = Field(
        description="The ID of a NUMA node to the bytes that the pod uses there.",
        max_length=8,
    )
