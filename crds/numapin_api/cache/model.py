"""Shares of the L3 cache and of memory bandwidth, and what is in force."""

from typing import Annotated

from pydantic import Field

from numapin_api.cpuset import CpuSet
from numapin_api.meta.wire import NOT_NULL, WireModel, never_null

Bandwidth = Annotated[int, Field(ge=1, le=100)]


class ExclusiveClass(WireModel):
    """What exclusive CPUs have."""

    l3_percent: Annotated[int, Field(ge=0, le=99)] = Field(
        default=0,
        description="The share of the ways of each L3 cache that exclusive CPUs have to "
        "themselves, rounded up to whole ways; all other CPUs fill the rest. Only caches that "
        "exclusive CPUs use are divided. 0: all CPUs fill all ways.",
    )
    memory_bandwidth_percent: Bandwidth = Field(
        default=100,
        description="The most memory bandwidth of each exclusive CPU, rounded up to what the "
        "hardware can set (MBA). 100: as much as it can use.",
    )


class OthersClass(WireModel):
    """What all other CPUs have, beside exclusive ones."""

    memory_bandwidth_percent: Bandwidth = Field(
        default=100,
        description="The most memory bandwidth of each CPU that is not exclusive, where exclusive "
        "CPUs use the same L3 cache; rounded up to what the hardware can set (MBA). 100: as much "
        "as it can use.",
    )


class CacheClasses(WireModel):
    """The two classes of CPUs."""

    exclusive: ExclusiveClass = Field(
        default_factory=ExclusiveClass, description="The exclusive CPUs of all containers."
    )
    others: OthersClass = Field(
        default_factory=OthersClass, description="All other CPUs, by resctrl's default group."
    )


class Cache(WireModel):
    """How caches and memory bandwidth are shared, by resctrl of the kernel."""

    classes: CacheClasses = Field(
        default_factory=CacheClasses,
        description="What exclusive CPUs have, and what the others have. It needs hardware with "
        "cache allocation (Intel RDT, AMD QoS) and a mounted resctrl.",
    )


class CacheStatus(WireModel):
    """Which share of caches and memory bandwidth exclusive CPUs have, read from resctrl."""

    cpus: CpuSet = Field(
        default=CpuSet(), description="The exclusive CPUs in the resctrl group numapin."
    )
    schemata: Annotated[str, Field(max_length=1024)] = Field(
        default="",
        description="The ways and the bandwidth of that group for each L3 cache, as resctrl writes "
        "them, such as L3:0=00f MB:0=100; empty if there is no such group.",
    )
    message: Annotated[Annotated[str, Field(max_length=1024)] | None, NOT_NULL] = Field(
        default=None,
        description="What is not as the spec says, and why; unset if all is.",
        json_schema_extra=never_null,
    )
