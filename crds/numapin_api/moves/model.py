"""Containers that are moved to other CPUs: what a policy allows, and what an assignment says."""

from typing import Final

from pydantic import ConfigDict, Field

from numapin_api.cpuset import MemSet
from numapin_api.duration import DURATION_PATTERN
from numapin_api.meta.cel_rules import rule, rules
from numapin_api.meta.selectors import LabelSelector
from numapin_api.meta.wire import Duration, Time, WireModel
from numapin_api.status.containers import Name, SomeCpus

MAX_NOTICE_SECONDS: Final = 60


class Dynamic(WireModel):
    """Which containers mode Dynamic moves, and how often."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                f"!has(self.notice) || !self.notice.matches('{DURATION_PATTERN}')"
                f" || duration(self.notice) <= duration('{MAX_NOTICE_SECONDS}s')",
                "notice is 0s to 60s: a pod that waits for the CPUs waits as long",
                ".notice",
            )
        )
    )
    max_moves_per_minute: int = Field(
        default=6,
        ge=1,
        le=60,
        description="How many containers are moved on one node within a minute. A pod for which "
        "more would have to move at once does not cause moves.",
    )
    notice: Duration = Field(
        default="1s",
        description="How long a container has its old and its new CPUs, from when both are in "
        "force until the old ones leave: 0s to 60s, such as 250ms.",
    )
    move_pause: Duration = Field(
        default="5m",
        description="How long a container that was moved is not moved again, such as 5m or 1h30m.",
    )
    move_memory: bool = Field(
        default=False,
        description="If true, a container whose memory is bound may be moved to another NUMA node, "
        "and the kernel moves its memory there. If false, it stays on its NUMA nodes.",
    )
    pod_selector: LabelSelector | None = Field(
        default=None,
        description="The pods whose containers may be moved, by their labels; if unset or empty, "
        "all pods that get CPUs from this policy.",
    )


class Moving(WireModel):
    """A move in progress: the container has its new CPUs, and the old ones leave."""

    leaving: SomeCpus = Field(
        description="The CPUs that leave. While cpus has them too, they are the container's; after "
        "that no other container gets them before the enforcer reports that they have left.",
    )
    leaving_mems: MemSet = Field(
        default=MemSet(), description="The NUMA nodes that its memory leaves; if empty, none."
    )
    at: Time | None = Field(
        default=None,
        description="When they leave (RFC 3339, UTC); unset until the enforcer has reported that "
        "the new CPUs are in force.",
    )
    namespace: Name | None = Field(
        default=None,
        description="The namespace of the pod for which the container is moved; unset if it is "
        "moved because the policy would place it otherwise.",
    )
    pod: Name | None = Field(
        default=None, description="The name of the pod for which the container is moved, if any."
    )
