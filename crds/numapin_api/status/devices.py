"""The devices of a node that have NUMA nodes, as its kubelet's podresources API lists them."""

from typing import Annotated, Final

from pydantic import Field

from numapin_api.cpuset import MemSet
from numapin_api.hardware.limits import (
    DEVICE_ID_LENGTH,
    MAX_CONTAINER_DEVICES,
    MAX_DEVICE_IDS,
    MAX_DEVICE_ROWS,
)
from numapin_api.meta.derived import OfContainer
from numapin_api.meta.wire import NOT_NULL, WireModel, atomic_list, never_null
from numapin_api.status.containers import Name, PodUid

_RESOURCE_LENGTH: Final = 317
"""Source: Kubernetes, a qualified name is a DNS subdomain, a slash and 63 characters."""
_MOST_DEVICES: Final = 1 << 20

Resource = Annotated[str, Field(min_length=1, max_length=_RESOURCE_LENGTH)]
Count = Annotated[int, Field(ge=1, le=_MOST_DEVICES)]


class DeviceCount(WireModel):
    """How many healthy devices of one resource are near the same NUMA nodes."""

    resource: Resource = Field(description="The resource, such as nvidia.com/gpu.")
    numa_nodes: MemSet = Field(
        default=MemSet(), description="The NUMA nodes that they are near; if empty, unknown."
    )
    count: Count = Field(description="How many there are.")


class ContainerDevices(OfContainer, WireModel):
    """The devices of one resource that a container has near the same NUMA nodes."""

    pod_uid: PodUid = Field(alias="podUID", description="The metadata.uid of the pod.")
    container: Name = Field(description="The name of the container.")
    resource: Resource = Field(description="The resource, such as nvidia.com/gpu.")
    numa_nodes: MemSet = Field(
        default=MemSet(), description="The NUMA nodes that they are near; if empty, unknown."
    )
    count: Count = Field(description="How many there are.")
    ids: tuple[Annotated[str, Field(max_length=DEVICE_ID_LENGTH)], ...] = Field(
        default=(),
        description="The first of them, as the device plug-in names them.",
        max_length=MAX_DEVICE_IDS,
        json_schema_extra=atomic_list(),
    )


class UnnamedDevices(WireModel):
    """The devices of one resource that a container of a pod has whose UID is not known yet."""

    namespace: Name = Field(description="The namespace of the pod.")
    pod: Name = Field(description="The name of the pod.")
    container: Name = Field(description="The name of the container.")
    resource: Resource = Field(description="The resource, such as nvidia.com/gpu.")
    numa_nodes: MemSet = Field(
        default=MemSet(), description="The NUMA nodes that they are near; if empty, unknown."
    )
    count: Count = Field(description="How many there are.")


class DevicesStatus(WireModel):
    """The devices of the node, as the kubelet's podresources API lists them.

    Resources of which no device has a NUMA node are left out: they are no preference.
    """

    message: Annotated[Annotated[str, Field(max_length=1024)] | None, NOT_NULL] = Field(
        default=None,
        description="Why the kubelet's answer is old or missing; unset if it has answered.",
        json_schema_extra=never_null,
    )
    resources: tuple[DeviceCount, ...] = Field(
        default=(),
        description="The healthy devices of the node, used or not.",
        max_length=MAX_DEVICE_ROWS,
        json_schema_extra=atomic_list(),
    )
    containers: tuple[ContainerDevices, ...] = Field(
        default=(),
        description="The devices that containers have.",
        max_length=MAX_CONTAINER_DEVICES,
        json_schema_extra=atomic_list(),
    )
    unnamed: tuple[UnnamedDevices, ...] = Field(
        default=(),
        description="The devices of pods whose sandbox the container runtime does not list yet, "
        "which is one of unnamedPods.",
        max_length=MAX_DEVICE_ROWS,
        json_schema_extra=atomic_list(),
    )
    unnamed_pods: tuple[PodUid, ...] = Field(
        default=(),
        description="UIDs of the pods that had a cgroup when the kubelet was asked, and whose "
        "namespace and name the container runtime has not said. Each has what unnamed says of its "
        "name.",
        max_length=MAX_DEVICE_ROWS,
        json_schema_extra=atomic_list(),
    )
