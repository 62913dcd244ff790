"""The hardware of a node as it stands in the status of its NodeAssignment."""

from pydantic import Field

from numapin_api.cpuset import CpuSet
from numapin_api.wire import WireModel, atomic_list


class NumaNodeStatus(WireModel):
    """One NUMA node, as discovered."""

    id: int = Field(ge=0, description="The ID of the NUMA node.")
    cpus: CpuSet = Field(
        default=CpuSet(), description="Its online CPUs; empty if it has only memory."
    )
    memory_bytes: int = Field(
        ge=0, description="The size of its memory in bytes.", json_schema_extra={"format": "int64"}
    )
    hugepages: dict[str, int] = Field(
        default_factory=dict,
        description="Its huge pages: page size, such as 2Mi, to the number of pages.",
        max_length=8,
    )
    distances: tuple[int, ...] = Field(
        default=(),
        description="The distance to each NUMA node, in the order of numaNodes.",
        json_schema_extra=atomic_list(),
    )
    on_device: bool | None = Field(
        default=None,
        description="True if the memory belongs to a GPU; it is not assigned to containers.",
    )


class CpuGroup(WireModel):
    """The CPUs of one socket or of one uncore cache."""

    id: int = Field(description="The ID of the group.")
    cpus: CpuSet = Field(description="The online CPUs of the group.")


class PciGroup(WireModel):
    """The PCI devices of one NUMA node."""

    numa_node: int | None = Field(
        default=None, description="The ID of the NUMA node; unset if it is unknown."
    )
    devices: tuple[str, ...] = Field(
        description="The addresses of the devices with their classes, such as 0000:3b:00.0/0200.",
        json_schema_extra=atomic_list(),
    )


class TopologyStatus(WireModel):
    """The hardware of the node, as discovered by the enforcer."""

    numa_nodes: tuple[NumaNodeStatus, ...] = Field(
        default=(), description="The online NUMA nodes.", json_schema_extra=atomic_list()
    )
    sockets: tuple[CpuGroup, ...] = Field(
        default=(), description="The sockets (packages).", json_schema_extra=atomic_list()
    )
    uncore_caches: tuple[CpuGroup, ...] = Field(
        default=(), description="The uncore (L3) caches.", json_schema_extra=atomic_list()
    )
    cores: tuple[CpuSet, ...] = Field(
        default=(),
        description="The threads of each core that has several; any other CPU is a core by itself.",
        json_schema_extra=atomic_list(),
    )
    offline: CpuSet = Field(default=CpuSet(), description="CPUs that are present but offline.")
    isolated: CpuSet = Field(
        default=CpuSet(), description="CPUs that the kernel isolates (isolcpus)."
    )
    pci: tuple[PciGroup, ...] = Field(
        default=(),
        description="The PCI devices for which locality matters, by NUMA node.",
        json_schema_extra=atomic_list(),
    )
    warnings: tuple[str, ...] = Field(
        default=(),
        description="What firmware or kernel reported wrongly, and what is assumed instead.",
        json_schema_extra=atomic_list(),
    )
