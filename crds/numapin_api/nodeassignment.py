"""NodeAssignment: the operator writes the spec, the node's enforcer writes the status."""

from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from numapin_api.cache.model import Cache, CacheStatus
from numapin_api.conditions.model import Condition
from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.hardware.status import FreeHugepagesByNode, TopologyStatus
from numapin_api.meta.cel_rules import rule, rules
from numapin_api.meta.derived import HasExclusiveCpus, HasRefusals, OfContainer
from numapin_api.meta.modes import Mode
from numapin_api.meta.wire import (
    NOT_NULL,
    Time,
    WireModel,
    atomic_list,
    keyed_list,
    never_null,
    without_default,
)
from numapin_api.moves.model import Moving
from numapin_api.starts.model import StartGate, StartGateStatus, UnassignedPods
from numapin_api.status.containers import (
    ClaimedCpus,
    ContainerStatus,
    KubeletContainer,
    Name,
    PodUid,
    PoolsInForce,
    SomeCpus,
    UnboundMemory,
)
from numapin_api.status.devices import DevicesStatus
from numapin_api.status.disturbances import MAX_DISTURBANCES, Disturbance
from numapin_api.status.isolation import IsolationStatus
from numapin_api.status.node_platform import CgroupStatus, RuntimeStatus
from numapin_api.system.model import System, SystemStatus

MAX_ENTRIES: Final = 2048
MAX_CONFINED: Final = 512
MAX_REFUSED: Final = 1024
MAX_CLAIMS: Final = 128
MAX_UNBOUND: Final = 64
SPEC_BYTES: Final = 848 << 10
CONTAINERS_BYTES: Final = 720 << 10
"""How much a NodeAssignment may list; the operator refuses pods beyond it.

etcd takes a request of 1.5 MiB (1,572,864 bytes) by default. The parts add up to less:

- `containers` and `refused`: 848 KiB (868,352); `containers` alone at most 720 KiB;
- `status.containers`: 235,000 (1,134 entries of 199 bytes with the longest names, or 2,048 of 110
  with short ones, besides their CPUs); `status.kubeletContainers` only while that is empty;
- `running`: 2,048 UIDs of 67 bytes (137,216);
- `status.topology`: 128 KiB (131,072); `status.freeHugepages`: 16,000;
- `status.claims`: 18,000 (128 entries of 100 bytes, besides their CPUs);
- `status.devices`, `.disturbances`: none, since an enforcer writes them to a NodeReport only;
- `status.unboundMemory`: 14,000 (64 pods, 8 NUMA nodes each);
- conditions, pools, metadata: 150,000.

That is 1,569,640. The 250 pods of a kubelet with 5 containers each, 1,250 entries, take 360 kB with
names as usual (282 bytes an entry). If every name is as long as Kubernetes allows, there is room
for 1,056 entries.
"""

MAX_BLOCKS: Final = 64
MAX_GRANTS: Final = 64
MAX_REFUSED_RESIZES: Final = 128
MAX_BLOCK_NODES: Final = 128
MESSAGE_LENGTH: Final = 2048
REQUESTED_LENGTH: Final = 256


class PolicyRef(WireModel):
    """The policy that the assignment was made from."""

    name: Name = Field(description="The name of the CpuPolicy.")
    generation: int = Field(
        ge=0,
        description="The metadata.generation of the CpuPolicy for which this spec was last "
        "written; a later one that leads to the same spec does not change it.",
    )
    since: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="The metadata.generation of this NodeAssignment in which the settings of the "
        "policy were first written. The enforcer has accepted them once "
        "status.observedGeneration is not lower; later generations differ in containers only.",
    )
    uid: PodUid | None = Field(
        default=None,
        description="The metadata.uid of the CpuPolicy: one that is created again begins at "
        "generation 1. Unset if an operator wrote it that did not know this field.",
    )
    hardware: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$", max_length=16)] | None = Field(
        default=None,
        description="A digest of the layout of CPUs and NUMA nodes for which this spec was last "
        "written; when it changes, each container is compared with the policy again. Unset if an "
        "operator wrote it that did not know this field.",
    )


class Pools(WireModel):
    """The CPUs of the node that are not exclusive to a container."""

    reserved: CpuSet = Field(
        description="CPUs that are never assigned exclusively; empty while exclusive containers "
        "still use all of them."
    )
    shared: SomeCpus = Field(description="CPUs of all containers without exclusive CPUs.")


class MemoryBlock(WireModel):
    """Memory assigned to a container on one NUMA node, or on several together."""

    numa_nodes: tuple[Annotated[int, Field(ge=0, le=1023)], ...] = Field(
        description="The NUMA nodes that the memory is on.",
        min_length=1,
        max_length=MAX_BLOCK_NODES,
        json_schema_extra=atomic_list(),
    )
    resource: str = Field(
        description="The resource: memory, or hugepages- and a page size, such as hugepages-2Mi.",
        pattern=r"^(memory|hugepages-[1-9][0-9]*(Ki|Mi|Gi|Ti))$",
        max_length=64,
    )
    bytes: int = Field(
        ge=0, description="The size in bytes.", json_schema_extra={"format": "int64"}
    )


class ContainerAssignment(OfContainer, WireModel):
    """The CPUs and NUMA nodes of one container."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!self.exclusive || size(self.cpus) > 0",
                "an exclusive container needs cpus: list them, or set exclusive to false",
                ".cpus",
            )
        )
    )
    pod_uid: PodUid = Field(alias="podUID", description="The metadata.uid of the pod.")
    namespace: Name = Field(description="The namespace of the pod.")
    pod: Name = Field(description="The name of the pod.")
    container: Name = Field(description="The name of the container.")
    cpus: CpuSet = Field(
        default=CpuSet(), description="The CPUs that it may use; if empty, the shared pool."
    )
    mems: MemSet = Field(
        default=MemSet(), description="The NUMA nodes that it may use memory of; if empty, any."
    )
    exclusive: bool = Field(
        default=False, description="Whether no other container may use these CPUs."
    )
    memory: tuple[MemoryBlock, ...] = Field(
        default=(),
        description="Memory assigned to it on these NUMA nodes.",
        max_length=MAX_BLOCKS,
        json_schema_extra=atomic_list(),
    )
    grants: tuple[SomeCpus, ...] | None = Field(
        default=None,
        description="The CPUs in the order in which it got them, as several sets; when it is "
        "resized, the CPUs of the last set go first. Unset if it was never resized.",
        max_length=MAX_GRANTS,
        json_schema_extra=atomic_list(),
    )
    outdated: bool | None = Field(
        default=None,
        description="True if the newest policy would not place it so; it stays until it ends.",
    )
    claimed: bool | None = Field(
        default=None,
        description="True if the DRA driver dra.cpu has given it these CPUs, for a ResourceClaim. "
        "They are kept from all others; its CFS quota and its memory are left alone.",
    )
    moving: Moving | None = Field(
        default=None,
        description="Set while the container is moved: which CPUs leave it, and when.",
    )
    moved_at: Time | None = Field(
        default=None,
        description="When it was last given other CPUs to move to (RFC 3339, UTC).",
    )


class Refusal(WireModel):
    """A container that requested exclusive CPUs or local memory and could not get them."""

    pod_uid: PodUid = Field(alias="podUID", description="The metadata.uid of the pod.")
    namespace: Name = Field(description="The namespace of the pod.")
    pod: Name = Field(description="The name of the pod.")
    container: Name | None = Field(
        default=None, description="The name of the container; unset if the whole pod is refused."
    )
    reason: str = Field(description="The reason, as one CamelCase word.", max_length=256)
    message: str = Field(
        description="What was requested, what was free on each NUMA node, what would have fitted.",
        max_length=MESSAGE_LENGTH,
    )
    requested: str | None = Field(
        default=None,
        description="What a container or pod that is resized requests by now. The message has the "
        "numbers of when this was refused first, or of the last release of CPUs or memory.",
        max_length=REQUESTED_LENGTH,
    )


RefusedPods = Annotated[
    tuple[Refusal, ...],
    Field(
        description="Containers and pods that were refused CPUs or memory, with the reasons.",
        max_length=MAX_REFUSED,
        json_schema_extra=atomic_list(),
    ),
]
RefusedResizes = Annotated[
    tuple[Refusal, ...],
    Field(
        description="Containers that keep what they have although the kubelet has granted a "
        "resize, with the reasons; each is tried again whenever something changes on the node. "
        "Unset if there is none.",
        max_length=MAX_REFUSED_RESIZES,
        json_schema_extra=atomic_list(),
    ),
]


class NodeAssignmentSpec(HasExclusiveCpus, HasRefusals, WireModel):
    """The desired state of the node; written only by the operator.

    `pools` is unset until the node's topology is known, and where `mode` is None.
    """

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.pools) || !has(self.containers) || size(self.containers) == 0",
                "containers need pools: set pools, so that other containers have CPUs to run on",
                ".pools",
            )
        )
    )
    policy: PolicyRef | None = Field(
        default=None, description="The policy in force; unset if none selects the node any more."
    )
    mode: Mode = Field(
        default="Static",
        description="Static, Dynamic: the spec is enforced. None: every cgroup gets its parent's "
        "CPUs, and the CFS limits and NUMA nodes from before are restored. Audit: likewise, and "
        "the enforcer reports what the spec would change.",
    )
    pools: Pools | None = Field(
        default=None, description="The CPUs that are not exclusive to a container."
    )
    cpu_quota: Literal["Unlimited", "Keep"] = Field(
        default="Unlimited",
        description="Unlimited: exclusive containers have no CFS quota. Keep: it stays as it is.",
    )
    isolation: Literal["Cpuset", "Partition", "IsolatedPartition"] = Field(
        default="Cpuset", description="How others are kept off exclusive CPUs; see CpuPolicy."
    )
    system: Annotated[System | None, NOT_NULL] = Field(
        default=None,
        description="What keeps off exclusive CPUs besides containers; unset if nothing does.",
        json_schema_extra=never_null,
    )
    cache: Annotated[Cache | None, NOT_NULL] = Field(
        default=None,
        description="How caches and memory bandwidth are shared; unset if that is left alone.",
        json_schema_extra=never_null,
    )
    start_gate: Annotated[StartGate | None, NOT_NULL] = Field(
        default=None,
        description="Which containers wait for their assignment before they are made; unset if "
        "none does.",
        json_schema_extra=never_null,
    )
    containers: tuple[ContainerAssignment, ...] = Field(
        default=(),
        description="Containers with assigned CPUs or memory; all others run on pools.shared.",
        max_length=MAX_ENTRIES,
        json_schema_extra=atomic_list(),
    )
    refused: RefusedPods = ()
    refused_omitted: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="The number of refused pods that are not listed in refused, which is full; "
        "unset if all are.",
    )
    refused_resizes: RefusedResizes | None = None
    unassigned: UnassignedPods = ()
    confined: Annotated[tuple[PodUid, ...] | None, NOT_NULL] = Field(
        default=None,
        description="UIDs of pods that run on pools.reserved alone, because pods of the policy "
        "confines their namespaces; unset if there are none.",
        max_length=MAX_CONFINED,
        json_schema_extra={**atomic_list(), "nullable": False},
    )
    release_at: Time | None = Field(
        default=None,
        description="When everything is given back (RFC 3339, UTC), because no policy wants it any "
        "more; unset while one does. A policy that returns before finds its containers where they "
        "are.",
    )


class ReportedState(WireModel):
    """What an enforcer reports of its node, wherever it does."""

    conditions: tuple[Condition, ...] = Field(
        default=(),
        description="The conditions Ready, Reconciling and Stalled. The operator sets Ready to "
        "Unknown while the enforcer does not renew its Lease.",
        max_length=16,
        json_schema_extra=keyed_list("type"),
    )
    free_hugepages: FreeHugepagesByNode = ()
    pools: PoolsInForce | None = Field(default=None, description="The pools in force.")
    kubelet_containers: tuple[KubeletContainer, ...] = Field(
        default=(),
        description="The containers to which the kubelet's static policies have given exclusive "
        "CPUs or NUMA nodes for their memory, by its checkpoints, while it pins containers itself. "
        "The spec gives them the same, so that they keep them when numapin takes over.",
        max_length=MAX_ENTRIES,
        json_schema_extra=atomic_list(),
    )
    claims: tuple[ClaimedCpus, ...] = Field(
        default=(),
        description="The CPUs that the DRA driver dra.cpu has given to ResourceClaims on the node, "
        "by the files that it makes for the container runtime.",
        max_length=MAX_CLAIMS,
        json_schema_extra=atomic_list(),
    )
    devices: Annotated[DevicesStatus | None, NOT_NULL] = Field(
        default=None,
        description="The devices that have NUMA nodes; unset if the kubelet is not asked.",
        json_schema_extra=never_null,
    )
    disturbances: tuple[Disturbance, ...] = Field(
        default=(),
        description="What runs on exclusive CPUs besides their containers: tasks that use more "
        "than 0.1 % of a CPU, interrupts that come more than once a second. Only with "
        "--cpu-metrics of the enforcer, which looks once a minute; it changes when one comes or "
        "goes.",
        max_length=MAX_DISTURBANCES,
        json_schema_extra=atomic_list(),
    )
    unbound_memory: tuple[UnboundMemory, ...] = Field(
        default=(),
        description="Where the kernel has the memory of Guaranteed pods that are not bound, or not "
        "yet, on machines with several NUMA nodes; the pods with most of it, in steps of 64 MiB or "
        "more.",
        max_length=MAX_UNBOUND,
        json_schema_extra=atomic_list(),
    )
    drift_count: int = Field(
        default=0,
        ge=0,
        description="Cpuset changes by others that were reverted.",
        json_schema_extra=without_default,
    )
    drift_causes: dict[str, int] = Field(
        default_factory=dict,
        description="The changes by cause. OwnerMoved: an exclusive container was on other CPUs. "
        "Intrusion: another container was on exclusive CPUs. Strayed: a shared container was off "
        "the shared pool. Memory: a container had other NUMA nodes. HostProcesses: a cgroup of no "
        "pod had other CPUs. Interrupt: an interrupt was set onto exclusive CPUs. "
        "Partition: an exclusive container was no partition any more.",
        max_length=8,
    )
    cgroup: CgroupStatus | None = Field(default=None, description="The cgroup version and driver.")
    runtime: RuntimeStatus | None = Field(default=None, description="The container runtime.")
    start_gate: Annotated[StartGateStatus | None, NOT_NULL] = Field(
        default=None,
        description="Whether containers wait for their assignment before they are made; unset if "
        "the spec has no startGate.",
        json_schema_extra=never_null,
    )
    system: Annotated[SystemStatus | None, NOT_NULL] = Field(
        default=None,
        description="What keeps off exclusive CPUs besides containers, read from the kernel; unset "
        "if the spec has no system.",
        json_schema_extra=never_null,
    )
    cache: Annotated[CacheStatus | None, NOT_NULL] = Field(
        default=None,
        description="The share of caches and memory bandwidth of exclusive CPUs, read from "
        "resctrl; unset if the spec has no cache.",
        json_schema_extra=never_null,
    )
    isolation: Annotated[IsolationStatus | None, NOT_NULL] = Field(
        default=None,
        description="The partitions of exclusive containers, read from the kernel; unset unless "
        "the spec asks for them.",
        json_schema_extra=never_null,
    )
    boot_id: str | None = Field(
        default=None,
        alias="bootID",
        description="The boot that this status is from, as status.nodeInfo.bootID of the Node.",
        max_length=64,
    )


class NodeAssignmentStatus(ReportedState):
    """The state of the node, read from the kernel, as an enforcer of 0.1 reports it."""

    observed_generation: int = Field(
        default=0,
        ge=0,
        description="The metadata.generation that this status was computed from.",
        json_schema_extra=without_default,
    )
    topology: TopologyStatus | None = Field(default=None, description="The hardware of the node.")
    containers: tuple[ContainerStatus, ...] = Field(
        default=(),
        description="The running containers of the spec, with their state read from the kernel.",
        max_length=MAX_ENTRIES,
        json_schema_extra=atomic_list(),
    )
    running: tuple[PodUid, ...] = Field(
        default=(),
        description="The UIDs of the pods that have a container cgroup on the node.",
        max_length=2048,
        json_schema_extra=atomic_list(),
    )
    refused: int = Field(default=0, ge=0, description="The number of refused pods.")
    outdated: int = Field(default=0, ge=0, description="The number of outdated containers.")
    last_pass_time: str | None = Field(
        default=None,
        description="When the enforcer last checked every cgroup, as of the last change of the "
        "status. Whether it runs is in the condition Ready, which is Unknown if it does not.",
        max_length=64,
        json_schema_extra={"format": "date-time"},
    )


class NodeAssignment(WireModel):
    """NodeAssignment defines the CPUs and NUMA nodes of the containers on one node."""

    metadata: dict[str, Any] = Field(default_factory=dict)
    spec: NodeAssignmentSpec = Field(
        description="The desired state of the node; written only by the operator.",
    )
    status: NodeAssignmentStatus | None = Field(
        default=None,
        description="The state of the node, read from the kernel; written only by its enforcer.",
    )
