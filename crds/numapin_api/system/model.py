"""Whether what belongs to no container keeps off exclusive CPUs, and what is in force."""

from typing import Annotated, Literal

from pydantic import Field

from numapin_api.cpuset import CpuSet
from numapin_api.meta.wire import NOT_NULL, WireModel, never_null


class System(WireModel):
    """What keeps off exclusive CPUs besides containers."""

    processes: Literal["Leave", "KeepOff"] = Field(
        default="Leave",
        description="Leave: processes that belong to no pod run where their cgroups let them. "
        "KeepOff: they run on the other CPUs, while there are exclusive ones: services, sessions "
        "and machines of systemd, and each other cgroup beside the kubelet's. Kernel threads stay "
        "where they are.",
    )
    interrupts: Literal["Leave", "KeepOff"] = Field(
        default="Leave",
        description="Leave: interrupts of devices, and work of the kernel that is bound to no CPU, "
        "come to the CPUs that the kernel and irqbalance choose. KeepOff: they come to other CPUs "
        "than exclusive ones, while there are any, unless the kernel does not let them move.",
    )


class HostProcessesStatus(WireModel):
    """Which exclusive CPUs the processes keep off that belong to no pod."""

    kept_off: CpuSet = Field(
        default=CpuSet(),
        description="The exclusive CPUs that no process outside of the kubelet's cgroups may use, "
        "by the kernel's answer; kernel threads do not count.",
    )
    message: Annotated[Annotated[str, Field(max_length=1024)] | None, NOT_NULL] = Field(
        default=None,
        description="What may still use exclusive CPUs, and why; unset if nothing may.",
        json_schema_extra=never_null,
    )


class InterruptsStatus(WireModel):
    """Which exclusive CPUs the interrupts of devices keep off."""

    kept_off: CpuSet = Field(
        default=CpuSet(),
        description="The exclusive CPUs to which no interrupt of a device comes, by the kernel's "
        "answer, but those of queues that serve these CPUs alone. Timers and what CPUs send each "
        "other do not count.",
    )
    message: Annotated[Annotated[str, Field(max_length=1024)] | None, NOT_NULL] = Field(
        default=None,
        description="What may still interrupt exclusive CPUs, and why; unset if nothing may.",
        json_schema_extra=never_null,
    )


class SystemStatus(WireModel):
    """What keeps off exclusive CPUs besides containers, read from the kernel."""

    processes: Annotated[HostProcessesStatus | None, NOT_NULL] = Field(
        default=None,
        description="Processes that belong to no pod; unset if the spec leaves them alone.",
        json_schema_extra=never_null,
    )
    interrupts: Annotated[InterruptsStatus | None, NOT_NULL] = Field(
        default=None,
        description="Interrupts of devices; unset if the spec leaves them alone.",
        json_schema_extra=never_null,
    )
