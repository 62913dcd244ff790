"""The hardware of a node as it stands in the status of its NodeAssignment."""

from typing import Annotated

from pydantic import Field

from numapin_api.cpuset import MAX_NUMA_NODE, CpuSet
from numapin_api.hardware.limits import (
    DEVICE_NAME,
    MAX_BYTES,
    MAX_CPUS,
    MAX_DEVICES,
    MAX_GROUP_ID,
    MAX_NAMES,
    MAX_NODES_WITH_FREE_PAGES,
    MAX_NUMA_NODES,
    MAX_PAGE_SIZES,
    MAX_PCI_ROOTS,
    MAX_ROOT_NODES,
    MAX_WARNINGS,
    PCI_ROOT,
    WARNING_LENGTH,
)
from numapin_api.meta.wire import NOT_NULL, WireModel, atomic_list

_Pages = Annotated[int, Field(ge=0, le=MAX_BYTES)]
_Distance = Annotated[int, Field(ge=0, le=MAX_GROUP_ID)]


class NumaNodeStatus(WireModel):
    """One NUMA node, as discovered."""

    id: int = Field(ge=0, le=MAX_NUMA_NODE, description="The ID of the NUMA node.")
    cpus: CpuSet = Field(
        default=CpuSet(), description="Its online CPUs; empty if it has only memory."
    )
    memory_bytes: int = Field(
        ge=0,
        le=MAX_BYTES,
        description="The size of its memory in bytes.",
        json_schema_extra={"format": "int64"},
    )
    hugepages: dict[str, _Pages] = Field(
        default_factory=dict,
        description="Its huge pages: page size, such as 2Mi, to the number of pages.",
        max_length=MAX_PAGE_SIZES,
    )
    distances: tuple[_Distance, ...] = Field(
        default=(),
        max_length=MAX_NUMA_NODES,
        description="The distance to each NUMA node, in the order of numaNodes.",
        json_schema_extra=atomic_list(),
    )
    on_device: bool | None = Field(
        default=None,
        description="True if the memory belongs to a device such as a GPU: not for containers.",
    )


class FreeHugepages(WireModel):
    """The huge pages of one NUMA node that the kernel has free."""

    numa_node: int = Field(ge=0, le=MAX_NUMA_NODE, description="The ID of the NUMA node.")
    pages: dict[str, _Pages] = Field(
        description="Page size, such as 2Mi, to the number of free pages.",
        max_length=MAX_PAGE_SIZES,
    )


FreeHugepagesByNode = Annotated[
    tuple[FreeHugepages, ...],
    Field(
        description="The huge pages that the kernel has free, by NUMA node.",
        max_length=MAX_NODES_WITH_FREE_PAGES,
        json_schema_extra=atomic_list(),
    ),
]


class CpuGroup(WireModel):
    """The CPUs of one socket or of one uncore cache."""

    id: int = Field(ge=0, le=MAX_GROUP_ID, description="The ID of the group.")
    cpus: CpuSet = Field(description="The online CPUs of the group.")


class PciGroup(WireModel):
    """The PCI devices of one NUMA node."""

    numa_node: Annotated[int, Field(ge=0, le=MAX_NUMA_NODE)] | None = Field(
        default=None, description="The ID of the NUMA node; unset if it is unknown."
    )
    devices: tuple[Annotated[str, Field(max_length=64)], ...] = Field(
        max_length=MAX_DEVICES,
        description="The addresses of the devices with their classes, such as 0000:3b:00.0/0200.",
        json_schema_extra=atomic_list(),
    )


DeviceNameText = Annotated[str, Field(max_length=128, pattern=DEVICE_NAME)]
PciRootText = Annotated[
    str,
    Field(
        max_length=128,
        pattern=rf"^{PCI_ROOT}=[0-9]{{1,4}}([,-][0-9]{{1,4}}){{0,{MAX_ROOT_NODES - 1}}}$",
    ),
]


class TopologyStatus(WireModel):
    """The hardware of the node, as discovered by the enforcer."""

    numa_nodes: tuple[NumaNodeStatus, ...] = Field(
        default=(),
        description="The online NUMA nodes.",
        max_length=MAX_NUMA_NODES,
        json_schema_extra=atomic_list(),
    )
    sockets: tuple[CpuGroup, ...] = Field(
        default=(),
        description="The sockets (packages).",
        max_length=MAX_CPUS,
        json_schema_extra=atomic_list(),
    )
    uncore_caches: tuple[CpuGroup, ...] = Field(
        default=(),
        description="The uncore (L3) caches.",
        max_length=MAX_CPUS,
        json_schema_extra=atomic_list(),
    )
    cores: tuple[CpuSet, ...] = Field(
        default=(),
        description="The threads of each core that has several; any other CPU is a core by itself.",
        max_length=MAX_CPUS // 2,
        json_schema_extra=atomic_list(),
    )
    offline: CpuSet = Field(default=CpuSet(), description="CPUs that are present but offline.")
    isolated: CpuSet = Field(
        default=CpuSet(), description="CPUs that the kernel isolates (isolcpus)."
    )
    withheld: CpuSet | None = Field(
        default=None,
        description="CPUs that are online and that pods may not use: the node has a part of the "
        "machine, by the cgroups above its pods. They are in no other field.",
    )
    pci: tuple[PciGroup, ...] = Field(
        default=(),
        description="The PCI devices for which locality matters, by NUMA node.",
        max_length=MAX_NUMA_NODES + 1,
        json_schema_extra=atomic_list(),
    )
    names: Annotated[tuple[DeviceNameText, ...] | None, NOT_NULL] = Field(
        default=None,
        description="The network interfaces and disks on a PCI bus, each with its addresses, such "
        "as net/ens1f0=0000:3b:00.0.",
        max_length=MAX_NAMES,
        json_schema_extra=atomic_list() | {"nullable": False},
    )
    pci_roots: Annotated[tuple[PciRootText, ...] | None, NOT_NULL] = Field(
        default=None,
        description="The PCI root complexes, each with the NUMA nodes of the devices below it, "
        "such as pci0000:3a=0.",
        max_length=MAX_PCI_ROOTS,
        json_schema_extra=atomic_list() | {"nullable": False},
    )
    warnings: tuple[Annotated[str, Field(max_length=WARNING_LENGTH)], ...] = Field(
        default=(),
        max_length=MAX_WARNINGS,
        description="What firmware or kernel reported wrongly, and what is assumed instead; and "
        "which part of the machine pods may use, if not all of it.",
        json_schema_extra=atomic_list(),
    )
