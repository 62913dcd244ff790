"""The start gate: for which containers a node's enforcer waits, and how many began with their sets.

A container runtime with NRI asks the enforcer before it makes a container.
"""

from typing import Annotated, Final, Literal

from pydantic import Field

from numapin_api.meta.selectors import LabelSelector
from numapin_api.meta.wire import NOT_NULL, WireModel, atomic_list, never_null
from numapin_api.status.containers import POD_UID_LENGTH, PodUid

MOST_MILLISECONDS: Final = 1500
MAX_START_TIMEOUT: Final = f"{MOST_MILLISECONDS}ms"
"""A runtime drops an NRI plug-in that takes longer than 2 s. Source: containerd, `internal/nri`,
`plugin_request_timeout`."""

MAX_UNASSIGNED: Final = 512
_MOST_LISTED: Final = 2048
_CONTAINER_LENGTH: Final = 63
"""Source: Kubernetes, a container's name is a DNS label."""

UnassignedPods = Annotated[
    tuple[PodUid, ...],
    Field(
        description="UIDs of pods that the start gate would wait for and that get no CPUs or NUMA "
        "nodes, because the policy does not select them; only with startGate.",
        max_length=MAX_UNASSIGNED,
        json_schema_extra=atomic_list(),
    ),
]


class StartGate(WireModel):
    """Which containers wait for their assignment before they are made, and how long."""

    timeout_milliseconds: int = Field(
        ge=1, le=MOST_MILLISECONDS, description="How long a container waits at most."
    )
    pod_selector: Annotated[LabelSelector | None, NOT_NULL] = Field(
        default=None,
        description="The pods that may get an assignment, by their labels; if unset or empty, all.",
        json_schema_extra=never_null,
    )
    qos_classes: tuple[Literal["Guaranteed", "Burstable"], ...] = Field(
        description="QoS classes whose pods may get an assignment.",
        max_length=2,
        json_schema_extra=atomic_list(),
    )
    memory: bool = Field(
        default=False,
        description="True if containers that ask for no whole CPUs may be bound to NUMA nodes.",
    )


class StartGateStatus(WireModel):
    """Whether containers wait for their assignment, and which of those in force began with it."""

    active: bool = Field(
        description="True while the container runtime asks before it makes a container. If false, "
        "containers start when the runtime starts them, and may begin on shared CPUs.",
    )
    message: Annotated[Annotated[str, Field(max_length=1024)] | None, NOT_NULL] = Field(
        default=None,
        description="Why it is not active, or no container waits; unset if they do.",
        json_schema_extra=never_null,
    )
    born_pinned: int = Field(
        default=0,
        ge=0,
        description="How many of the containers in force had their CPUs and NUMA nodes, read from "
        "the kernel, before their first process ran.",
    )
    born_shared: tuple[
        Annotated[str, Field(max_length=POD_UID_LENGTH + 1 + _CONTAINER_LENGTH)], ...
    ] = Field(
        default=(),
        description="The containers in force, as UID/container, that began without, or of which it "
        "is not known.",
        max_length=_MOST_LISTED,
        json_schema_extra=atomic_list(),
    )
