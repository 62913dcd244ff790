"""NodeAssignment: spec (the operator writes it) and status (that node's enforcer writes it)."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from numapin_api.conditions import Condition
from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.wire import WireModel, atomic_list, keyed_list, rule, rules

PodUid = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
Name = Annotated[str, Field(min_length=1, max_length=253)]
SomeCpus = Annotated[CpuSet, Field(min_length=1)]


class PolicyRef(WireModel):
    """The policy that an assignment was made from."""

    name: Name = Field(description="The CpuPolicy's name.")
    generation: int = Field(ge=0, description="The CpuPolicy's metadata.generation.")


class Pools(WireModel):
    """The node's CPUs that no container owns."""

    reserved: CpuSet = Field(
        description="CPUs never given out exclusively; empty while containers still own them all."
    )
    shared: SomeCpus = Field(description="CPUs that every container without its own runs on.")


class MemoryBlock(WireModel):
    """Memory promised to a container on some NUMA nodes together."""

    numa_nodes: tuple[Annotated[int, Field(ge=0, le=1023)], ...] = Field(
        description="The NUMA nodes that hold it.",
        min_length=1,
        max_length=128,
        json_schema_extra=atomic_list(),
    )
    resource: str = Field(
        description="memory, or hugepages- and a page size.",
        pattern=r"^(memory|hugepages-[1-9][0-9]*(Ki|Mi|Gi|Ti))$",
        max_length=64,
    )
    bytes: int = Field(ge=0, description="How much.", json_schema_extra={"format": "int64"})


class ContainerAssignment(WireModel):
    """What one container was given."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!self.exclusive || size(self.cpus) > 0",
                "an exclusive container needs cpus",
                ".cpus",
            )
        )
    )
    pod_uid: PodUid = Field(alias="podUID", description="The pod's metadata.uid.")
    namespace: Name = Field(description="The pod's namespace.")
    pod: Name = Field(description="The pod's name.")
    container: Name = Field(description="The container's name.")
    cpus: CpuSet = Field(
        default=CpuSet(), description="The CPUs it runs on; empty means the shared pool."
    )
    mems: MemSet = Field(
        default=MemSet(), description="The NUMA nodes its memory comes from; empty means any."
    )
    exclusive: bool = Field(
        default=False, description="Whether no other container may run on these CPUs."
    )
    memory: tuple[MemoryBlock, ...] = Field(
        default=(),
        description="Memory promised to it on those NUMA nodes.",
        max_length=64,
        json_schema_extra=atomic_list(),
    )


class Refusal(WireModel):
    """A container that was to get CPUs or memory of its own and could not; it runs shared."""

    pod_uid: PodUid = Field(alias="podUID", description="The pod's metadata.uid.")
    namespace: Name = Field(description="The pod's namespace.")
    pod: Name = Field(description="The pod's name.")
    container: Name | None = Field(
        default=None, description="The container that could not be placed, where it was one."
    )
    reason: str = Field(description="Why, as one CamelCase word.", max_length=256)
    message: str = Field(
        description="What was asked, what was free on each NUMA node, what would have fitted.",
        max_length=2048,
    )


class NodeAssignmentSpec(WireModel):
    """What the node is to enforce; written by the operator alone.

    `pools` is unset until the node's topology is known, and where `mode` is None.
    """

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.pools) || !has(self.containers) || size(self.containers) == 0",
                "containers need pools: everybody else must have CPUs to run on",
                ".pools",
            )
        )
    )
    policy: PolicyRef | None = Field(
        default=None, description="The policy in force; unset while one is being given back."
    )
    mode: Literal["Static", "None", "Dynamic"] = Field(
        default="Static",
        description="Static enforces; None gives every cgroup back as it was found.",
    )
    pools: Pools | None = Field(default=None, description="The CPUs that no container owns.")
    cpu_quota: Literal["Unlimited", "Keep"] = Field(
        default="Unlimited", description="Whether exclusive containers are freed of CFS quota."
    )
    isolation: Literal["Cpuset", "Partition", "IsolatedPartition"] = Field(
        default="Cpuset", description="By what others are kept off exclusive CPUs."
    )
    containers: tuple[ContainerAssignment, ...] = Field(
        default=(),
        description="Containers with CPUs or memory of their own; all others run in pools.shared.",
        max_length=1024,
        json_schema_extra=atomic_list(),
    )
    refused: tuple[Refusal, ...] = Field(
        default=(),
        description="Pods that could not be placed, and why.",
        max_length=1024,
        json_schema_extra=atomic_list(),
    )


class NumaNodeStatus(WireModel):
    """One NUMA node as discovered."""

    id: int = Field(ge=0, description="Its number.")
    cpus: CpuSet = Field(default=CpuSet(), description="Its online CPUs; empty for memory alone.")
    memory_bytes: int = Field(
        ge=0, description="Its memory.", json_schema_extra={"format": "int64"}
    )
    hugepages: dict[str, int] = Field(
        default_factory=dict,
        description="Page size, such as 2Mi, to the number of pages.",
        max_length=8,
    )
    distances: tuple[int, ...] = Field(
        default=(),
        description="Distance to each NUMA node, in the order of this list.",
        json_schema_extra=atomic_list(),
    )
    on_device: bool | None = Field(
        default=None,
        description="Set where the memory is a GPU's own; containers are not given it.",
    )


class CpuGroup(WireModel):
    """CPUs that belong together: a socket, or an uncore cache."""

    id: int = Field(description="Its number.")
    cpus: CpuSet = Field(description="Its online CPUs.")


class PciGroup(WireModel):
    """PCI devices that hang on one NUMA node."""

    numa_node: int | None = Field(
        default=None, description="The NUMA node; unset where the machine does not say."
    )
    devices: tuple[str, ...] = Field(
        description="Addresses, each with its class, such as 0000:3b:00.0/0200.",
        json_schema_extra=atomic_list(),
    )


class TopologyStatus(WireModel):
    """The node's hardware, compact: kernel lists where possible."""

    numa_nodes: tuple[NumaNodeStatus, ...] = Field(
        default=(), description="Online NUMA nodes.", json_schema_extra=atomic_list()
    )
    sockets: tuple[CpuGroup, ...] = Field(
        default=(), description="Sockets (packages).", json_schema_extra=atomic_list()
    )
    uncore_caches: tuple[CpuGroup, ...] = Field(
        default=(), description="CPUs that share an L3.", json_schema_extra=atomic_list()
    )
    cores: tuple[CpuSet, ...] = Field(
        default=(),
        description="Sibling threads of each core that has several; a CPU not listed is a core.",
        json_schema_extra=atomic_list(),
    )
    offline: CpuSet = Field(default=CpuSet(), description="CPUs present but offline.")
    isolated: CpuSet = Field(
        default=CpuSet(), description="CPUs isolated by the kernel (isolcpus)."
    )
    pci: tuple[PciGroup, ...] = Field(
        default=(),
        description="PCI devices by NUMA node, those that locality matters for.",
        json_schema_extra=atomic_list(),
    )
    warnings: tuple[str, ...] = Field(
        default=(),
        description="What was wrong in the firmware's tables, and what was assumed.",
        json_schema_extra=atomic_list(),
    )


class PoolsInForce(WireModel):
    """The pools as the kernel has them."""

    reserved: CpuSet = Field(default=CpuSet(), description="CPUs never given out exclusively.")
    shared: CpuSet = Field(default=CpuSet(), description="CPUs of everybody without their own.")
    exclusive: CpuSet = Field(default=CpuSet(), description="CPUs owned by one container each.")


class ContainerStatus(WireModel):
    """One container of the spec as the kernel has it."""

    pod_uid: PodUid = Field(alias="podUID", description="The pod's metadata.uid.")
    container: Name = Field(description="The container's name.")
    cpus: CpuSet = Field(description="The CPUs it may run on, read back from the kernel.")
    mems: MemSet = Field(default=MemSet(), description="Its NUMA nodes, read back from the kernel.")
    exclusive: bool = Field(
        default=False,
        description="True once every other container was seen to be off these CPUs.",
    )


class CgroupStatus(WireModel):
    """How this node keeps its cgroups."""

    version: Literal[1, 2] = Field(description="cgroup v1 or v2.")
    driver: Literal["cgroupfs", "systemd"] = Field(description="The kubelet's cgroup driver.")


class RuntimeStatus(WireModel):
    """The container runtime that answers on the CRI socket."""

    name: str = Field(description="Its name.", max_length=128)
    version: str = Field(description="Its version.", max_length=128)


class NodeAssignmentStatus(WireModel):
    """What the node's kernel does; written by that node's enforcer alone, on change only."""

    observed_generation: int = Field(
        default=0, ge=0, description="The generation of the spec that this status tells of."
    )
    topology: TopologyStatus | None = Field(default=None, description="The node's hardware.")
    pools: PoolsInForce | None = Field(default=None, description="The pools in force.")
    containers: tuple[ContainerStatus, ...] = Field(
        default=(),
        description="The spec's containers that run, as the kernel has them.",
        max_length=1024,
        json_schema_extra=atomic_list(),
    )
    running: tuple[PodUid, ...] = Field(
        default=(),
        description="Pods of which a container's cgroup still exists, by UID.",
        max_length=2048,
        json_schema_extra=atomic_list(),
    )
    drift_count: int = Field(default=0, ge=0, description="Sets changed by others, set right.")
    drift_causes: dict[str, int] = Field(
        default_factory=dict,
        description="Of these, how many were an owner elsewhere than on its CPUs (OwnerMoved), "
        "anybody else on an owner's (Intrusion), one who shares elsewhere than on the shared CPUs "
        "(Strayed), memory on other NUMA nodes (Memory).",
        max_length=8,
    )
    cgroup: CgroupStatus | None = Field(default=None, description="How cgroups are kept here.")
    runtime: RuntimeStatus | None = Field(default=None, description="The container runtime.")
    conditions: tuple[Condition, ...] = Field(
        default=(),
        description="Ready, Reconciling and Stalled.",
        max_length=16,
        json_schema_extra=keyed_list("type"),
    )


class NodeAssignment(WireModel):
    """NodeAssignment says which container of one node runs on which CPUs and NUMA nodes."""

    metadata: dict[str, Any] = Field(default_factory=dict)
    spec: NodeAssignmentSpec = Field(
        description="What the node is to enforce; written by the operator alone.",
    )
    status: NodeAssignmentStatus | None = Field(
        default=None, description="What the node's kernel does; written by its enforcer alone."
    )
