"""NodeReport and NodeTopology: what a node's enforcer reports of the kernel and of the hardware."""

from typing import Annotated, Any, Final

from pydantic import Field

from numapin_api.hardware.status import TopologyStatus
from numapin_api.meta.wire import WireModel, atomic_list
from numapin_api.nodeassignment import MAX_ENTRIES, ReportedState
from numapin_api.status.containers import (
    POD_UID_LENGTH,
    ContainerStatus,
)

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


class NodeReportStatus(ReportedState):
    """The state of the node, read from the kernel; written only by the node's enforcer."""

    observed: ObservedAssignment | None = Field(
        default=None, description="The generation that the conditions are about."
    )
    enforced: ObservedAssignment | None = Field(
        default=None,
        description="The generation that is in force: each line of spec.assigned of the "
        "NodeAssignment that has no later `since` is in force as it says, unless it is named in "
        "differences or notRunning.",
    )
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
