"""Which exclusive CPUs are in cpuset partitions, as the kernel says."""

from pydantic import Field

from numapin_api.cpuset import CpuSet
from numapin_api.meta.wire import WireModel


class IsolationStatus(WireModel):
    """The cpuset partitions of exclusive containers, read from the kernel."""

    partitions: CpuSet = Field(
        default=CpuSet(),
        description="The CPUs of the exclusive containers that are partitions: no other process "
        "can use them, whatever its cgroup asks for. Per-CPU threads of the kernel can.",
    )
    isolated: CpuSet = Field(
        default=CpuSet(),
        description="The CPUs without load balancing, of all isolated partitions of the machine "
        "(cpuset.cpus.isolated of the root cgroup).",
    )
