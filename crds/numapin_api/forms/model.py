"""The fields of a NodeAssignment that v1beta1 has instead of others of v1alpha1.

Both versions have one schema with the fields of both, so that no webhook converts. Programs read
either form by `forms.spec`.
"""

from typing import Annotated

from pydantic import ConfigDict, Field

from numapin_api.cpuset import CpuSet
from numapin_api.duration import TIME_PATTERN
from numapin_api.forms.lines import LINE_LENGTH
from numapin_api.meta.cel_rules import rule, rules
from numapin_api.meta.wire import WireModel, atomic_list
from numapin_api.nodeassignment import MAX_ENTRIES, RefusedPods, RefusedResizes
from numapin_api.starts.model import UnassignedPods
from numapin_api.status.containers import SomeCpus

_EITHER = (
    "has(self.reservedCPUs) && has(self.sharedCPUs)"
    " ? !has(self.reserved) && !has(self.shared)"
    " : has(self.reserved) && has(self.shared) && !has(self.reservedCPUs) && !has(self.sharedCPUs)"
)


class PoolsOfLines(WireModel):
    """The CPUs of the node that are not exclusive to a container."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(_EITHER, "set reservedCPUs and sharedCPUs, both; or, for 0.1, reserved and shared")
        )
    )
    reserved_cpus: CpuSet | None = Field(
        default=None,
        alias="reservedCPUs",
        description="CPUs that are never assigned exclusively; empty while exclusive containers "
        "still use all of them.",
    )
    shared_cpus: SomeCpus | None = Field(
        default=None,
        alias="sharedCPUs",
        description="CPUs of all containers without exclusive CPUs.",
    )


class SpecOfLines(WireModel):
    """The desired state of the node; written only by the operator."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.assigned) || size(self.assigned) == 0"
                " || (has(self.pools) && has(self.pools.sharedCPUs))",
                "assigned containers need pools: set pools.sharedCPUs, so that other containers "
                "have CPUs to run on",
                ".pools",
            ),
            rule(
                "!has(self.assigned) || !has(self.containers) || size(self.containers) == 0",
                "containers and assigned say the same: set assigned only",
                ".containers",
            ),
        )
    )
    pools: PoolsOfLines | None = Field(
        default=None, description="The CPUs that are not exclusive to a container."
    )
    assigned: tuple[Annotated[str, Field(max_length=LINE_LENGTH)], ...] = Field(
        default=(),
        description="Containers with assigned CPUs or memory, a line each: namespace/pod, "
        "container, then key=value: cpus (exclusive unless exclusive=false), mems (NUMA nodes), "
        "memory and hugepages-SIZE (NUMA nodes:bytes), grants, outdated, claimed, leaving, "
        "leavingMems, leaveAt and for (while it is moved), movedAt, since (the generation that "
        "first had these CPUs and NUMA nodes), uid (of the pod). All others run on "
        "pools.sharedCPUs.",
        max_length=MAX_ENTRIES,
        json_schema_extra=atomic_list(),
    )
    release_time: Annotated[str, Field(pattern=TIME_PATTERN, max_length=20)] | None = Field(
        default=None,
        description="When everything is given back (RFC 3339, UTC), because no policy wants it any "
        "more; unset while one does. A policy that returns before finds its containers where they "
        "are.",
        json_schema_extra={"format": "date-time"},
    )


class StatusOfOperator(WireModel):
    """What the operator has to tell; it decides nothing by it but what it tells again."""

    refusals: RefusedPods = ()
    refusals_omitted: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="The number of refused pods that are not listed in refusals, which is full; "
        "unset if all are.",
    )
    resize_refusals: RefusedResizes | None = None
    unassigned: UnassignedPods = ()


class AssignmentOfLines(WireModel):
    """The fields that v1beta1 adds."""

    spec: SpecOfLines = Field(description="The desired state of the node.")
    status: StatusOfOperator | None = Field(default=None, description="What the operator tells.")
