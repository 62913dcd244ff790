"""NodeReport and NodeTopology: what a node's enforcer reports of the kernel and of the hardware."""

from typing import Annotated, Any, Final

from pydantic import Field

from numapin_api.conditions.model import Condition
from numapin_api.hardware.status import FreeHugepagesByNode, TopologyStatus
from numapin_api.meta.wire import WireModel, atomic_list, keyed_list
from numapin_api.nodeassignment import MAX_CLAIMS, MAX_ENTRIES, MAX_UNBOUND
from numapin_api.status.containers import (
    POD_UID_LENGTH,
    ClaimedCpus,
    ContainerStatus,
    KubeletContainer,
    PoolsInForce,
    UnboundMemory,
)
from numapin_api.status.node_platform import CgroupStatus, RuntimeStatus

_CONTAINER_LENGTH: Final = 63
"""Source: Kubernetes, a container's name is a DNS label."""


class ObservedAssignment(WireModel):
    """A NodeAssignment and one of its generations."""

    uid: Annotated[str, Field(max_length=POD_UID_LENGTH)] = Field(
        description="The metadata.uid of the NodeAssignment; empty if there is none."
    )
    generation: int = Field(
        ge=0,
        description="Its metadata.generation; 0 if it is of none.",
        json_schema_extra={"format": "int64"},
    )


class NodeReportStatus(WireModel):
    """The state of the node, read from the kernel; written only by the node's enforcer."""

    conditions: tuple[Condition, ...] = Field(
        default=(),
        description="The conditions Ready, Reconciling and Stalled. The operator sets Ready to "
        "Unknown while the enforcer does not renew its Lease.",
        max_length=16,
        json_schema_extra=keyed_list("type"),
    )
    observed: ObservedAssignment | None = Field(
        default=None, description="The generation that the conditions are about."
    )
    enforced: ObservedAssignment | None = Field(
        default=None,
        description="The generation that is in force: each line of spec.assigned of the "
        "NodeAssignment that has no later `since` is in force as it says, unless it is named in "
        "differences or notRunning.",
    )
    pools: PoolsInForce | None = Field(default=None, description="The pools in force.")
    differences: tuple[ContainerStatus, ...] = Field(
        default=(),
        description="The containers that have other CPUs or NUMA nodes than their line says, or no "
        "line, or are not exclusive although it says so, read from the kernel.",
        max_length=MAX_ENTRIES,
        json_schema_extra=atomic_list(),
    )
    not_running: tuple[
        Annotated[str, Field(max_length=POD_UID_LENGTH + 1 + _CONTAINER_LENGTH)], ...
    ] = Field(
        default=(),
        description="What has a line and does not run: the UID of a pod without any container "
        "cgroup, or UID/container of one container.",
        max_length=MAX_ENTRIES,
        json_schema_extra=atomic_list(),
    )
    free_hugepages: FreeHugepagesByNode = ()
    kubelet_containers: tuple[KubeletContainer, ...] = Field(
        default=(),
        description="The containers to which the kubelet's static policies have given exclusive "
        "CPUs or NUMA nodes for their memory, by its checkpoints, while it pins containers itself. "
        "The spec gives them the same, so that they keep them when numapin takes over.",
        max_length=MAX_ENTRIES,
        json_schema_extra=atomic_list(),
    )
    claims: tuple[ClaimedCpus, ...] = Field(
        default=(),
        description="The CPUs that the DRA driver dra.cpu has given to ResourceClaims on the node, "
        "by the files that it makes for the container runtime.",
        max_length=MAX_CLAIMS,
        json_schema_extra=atomic_list(),
    )
    unbound_memory: tuple[UnboundMemory, ...] = Field(
        default=(),
        description="Where the kernel has the memory of Guaranteed pods that are not bound, or not "
        "yet, on machines with several NUMA nodes; the pods with most of it, in steps of 64 MiB or "
        "more.",
        max_length=MAX_UNBOUND,
        json_schema_extra=atomic_list(),
    )
    drift_count: int = Field(
        default=0, ge=0, description="Cpuset changes by others that were reverted."
    )
    drift_causes: dict[str, int] = Field(
        default_factory=dict,
        description="The changes by cause. OwnerMoved: an exclusive container was on other CPUs. "
        "Intrusion: another container was on exclusive CPUs. Strayed: a shared container was off "
        "the shared pool. Memory: a container had other NUMA nodes.",
        max_length=8,
    )
    cgroup: CgroupStatus | None = Field(default=None, description="The cgroup version and driver.")
    runtime: RuntimeStatus | None = Field(default=None, description="The container runtime.")
    boot_id: str | None = Field(
        default=None,
        alias="bootID",
        description="The boot that this status is from, as status.nodeInfo.bootID of the Node.",
        max_length=64,
    )


class NodeReport(WireModel):
    """NodeReport says what is in force on the node of its name, as its enforcer reads it."""

    metadata: dict[str, Any] = Field(default_factory=dict)
    status: NodeReportStatus | None = Field(
        default=None,
        description="The state of the node, read from the kernel; written only by its enforcer.",
    )


class NodeTopology(WireModel):
    """NodeTopology is the hardware of the node of its name, as its enforcer discovers it."""

    metadata: dict[str, Any] = Field(default_factory=dict)
    status: TopologyStatus | None = Field(
        default=None, description="The hardware of the node; written only by its enforcer."
    )
