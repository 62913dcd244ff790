"""The machine format: a Topology as JSON, in files that the simulator reads."""

import json
from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from numapin_api.cpuset import MAX_ID, CpuSet, MemSet
from numapin_api.invalid import invalid_fields
from numapin_api.topology import (
    NO_CACHE,
    Cpu,
    DeviceName,
    NumaNode,
    PciDevice,
    PciRoot,
    Topology,
    default_distances,
    page_size_bytes,
)


class MachineFormatError(ValueError):
    """A text is not in the machine format; the message names the field and the remedy."""

    def __init__(self, source: str, field: str, problem: str) -> None:
        super().__init__(": ".join(filter(None, (source, field, problem))))
        self.source, self.field, self.problem = source, field, problem


def parse_machine(text: str | bytes, source: str) -> Topology:
    """Parse one machine in JSON; errors name `source`, such as the path of the file.

    Raises:
        MachineFormatError: not JSON, a field that is missing, unknown or of the wrong type, or
            rows that contradict each other.
    """
    try:
        machine = _Machine.model_validate_json(text)
    except ValidationError as refused:
        raise MachineFormatError(source, *invalid_fields(refused)[0]) from refused
    for field, problem in chain(_cpu_faults(machine), _numa_faults(machine)):
        raise MachineFormatError(source, field, problem)
    return machine.topology()


def machine_document(topology: Topology) -> dict[str, Any]:
    """The machine as a JSON document; huge page sizes without pages are left out."""
    return {
        "cpus": [
            [cpu.id, cpu.core, cpu.socket, cpu.uncore_cache, cpu.numa_node] for cpu in topology.cpus
        ],
        "numaNodes": [
            {
                "id": node.id,
                "memoryBytes": node.memory_bytes,
                "hugepages": {size: count for size, count in node.hugepages.items() if count},
                "distances": list(node.distances),
                **({"onDevice": True} if node.on_device else {}),
            }
            for node in topology.numa_nodes
        ],
        "offlineCPUs": str(topology.offline),
        "isolatedCPUs": str(topology.isolated),
        **({"withheldCPUs": str(topology.withheld)} if topology.withheld else {}),
        "pci": [
            {
                "address": device.address,
                "class": f"0x{device.pci_class}",
                "numaNode": device.numa_node,
            }
            for device in topology.pci
        ],
        **(
            {"names": {one.name: list(one.pci) for one in topology.names}} if topology.names else {}
        ),
        **(
            {"pciRoots": {one.name: str(one.numa_nodes) for one in topology.pci_roots}}
            if topology.pci_roots
            else {}
        ),
    }


def format_machine(topology: Topology) -> str:
    """The machine as JSON text: one CPU, NUMA node or device a line, newline at the end."""
    parts = []
    for key, value in machine_document(topology).items():
        if isinstance(value, list) and value:
            rows = ",\n".join(f"    {json.dumps(row)}" for row in value)
            parts.append(f'  "{key}": [\n{rows}\n  ]')
        else:
            parts.append(f'  "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _checked_page_sizes(pages: dict[str, int]) -> dict[str, int]:
    for name in pages:
        page_size_bytes(name)
    return pages


_Id = Annotated[int, Field(ge=0, le=MAX_ID)]
_GroupId = Annotated[int, Field(ge=0)]
_CacheId = Annotated[int, Field(ge=NO_CACHE)]
_Count = Annotated[int, Field(ge=0)]
_PageCounts = Annotated[dict[str, _Count], AfterValidator(_checked_page_sizes)]


class _Part(BaseModel):
    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", alias_generator=to_camel, populate_by_name=False
    )


class _NumaNode(_Part):
    id: _Id
    memory_bytes: _Count
    hugepages: _PageCounts = {}
    distances: tuple[_Count, ...] = ()
    on_device: bool = False


class _PciDevice(_Part):
    address: str
    pci_class: str = Field(alias="class", pattern=r"^0x[0-9a-f]{4}$")
    numa_node: _Id | None = None


class _Machine(_Part):
    cpus: tuple[tuple[_Id, _Id, _GroupId, _CacheId, _Id], ...] = Field(min_length=1)
    numa_nodes: tuple[_NumaNode, ...] = Field(min_length=1)
    offline: CpuSet = Field(CpuSet(), alias="offlineCPUs")
    isolated: CpuSet = Field(CpuSet(), alias="isolatedCPUs")
    withheld: CpuSet = Field(CpuSet(), alias="withheldCPUs")
    pci: tuple[_PciDevice, ...] = ()
    names: dict[str, tuple[str, ...]] = {}
    pci_roots: dict[str, MemSet] = {}

    def topology(self) -> Topology:
        """The machine as values, by ascending ids."""
        order = sorted(range(len(self.numa_nodes)), key=lambda index: self.numa_nodes[index].id)
        assumed = default_distances(len(order))
        nodes = []
        for row, index in enumerate(order):
            node = self.numa_nodes[index]
            distances = tuple(node.distances[column] for column in order if node.distances)
            distances = distances or assumed[row]
            nodes.append(
                NumaNode(node.id, node.memory_bytes, node.hugepages, distances, node.on_device)
            )
        return Topology(
            cpus=tuple(sorted((Cpu(*row) for row in self.cpus), key=lambda cpu: cpu.id)),
            numa_nodes=tuple(nodes),
            offline=self.offline,
            isolated=self.isolated,
            pci=tuple(PciDevice(pci.address, pci.pci_class[2:], pci.numa_node) for pci in self.pci),
            withheld=self.withheld,
            names=tuple(DeviceName(name, pci) for name, pci in self.names.items()),
            pci_roots=tuple(PciRoot(name, nodes) for name, nodes in self.pci_roots.items()),
        )


def _cpu_faults(machine: _Machine) -> Iterator[tuple[str, str]]:
    known = {node.id for node in machine.numa_nodes}
    lowest: dict[int, int] = {}
    for cpu, core, *_ in machine.cpus:
        lowest[core] = min(cpu, lowest.get(core, cpu))
    seen: set[int] = set()
    for index, (cpu, core, _, _, numa_node) in enumerate(machine.cpus):
        field = f"cpus[{index}]"
        if cpu in seen:
            yield field, f"CPU {cpu} has a row already; give each online CPU one row"
        if cpu in machine.offline:
            yield field, f"CPU {cpu} is in offlineCPUs too; list online CPUs only"
        if cpu in machine.withheld:
            yield field, f"CPU {cpu} is in withheldCPUs too; give it a row or list it there"
        if lowest[core] != core:
            yield (
                field,
                f"core {core} is not the lowest CPU of its siblings; write {lowest[core]} there",
            )
        if numa_node not in known:
            yield field, f"NUMA node {numa_node} is not in numaNodes; add it or correct the row"
        seen.add(cpu)


def _numa_faults(machine: _Machine) -> Iterator[tuple[str, str]]:
    wanted, seen = len(machine.numa_nodes), set[int]()
    for index, node in enumerate(machine.numa_nodes):
        field = f"numaNodes[{index}]"
        if node.id in seen:
            yield f"{field}.id", f"NUMA node {node.id} is listed already; give each one entry"
        if len(node.distances) not in {0, wanted}:
            yield (
                f"{field}.distances",
                f"{len(node.distances)} values for {wanted} NUMA nodes; give one for each entry"
                " of numaNodes, in that order",
            )
        seen.add(node.id)
