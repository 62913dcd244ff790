"""CpuPolicy: what a platform team writes. Spec and status; the source of the CRD's schema."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from numapin_api.cpuset import CpuSet
from numapin_api.policystatus import CpuPolicyStatus
from numapin_api.selectors import LabelSelector, LabelValue
from numapin_api.wire import (
    Quantity,
    WireModel,
    cpu_list_that_people_write,
    keyed_list,
    label_map_rules,
    rule,
    rules,
)

WrittenCpus = Annotated[CpuSet, Field(min_length=1, json_schema_extra=cpu_list_that_people_write)]
HUGEPAGE_SIZE = r"^[1-9][0-9]*(Ki|Mi|Gi|Ti)$"


class Reserved(WireModel):
    """CPUs kept for the system: never given out exclusively."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!(has(self.cpus) && has(self.count))",
                "give cpus or count, not both: cpus names the CPUs, count lets numapin choose",
            )
        )
    )
    cpus: WrittenCpus | None = Field(
        default=None,
        description="The reserved CPUs as a kernel list, such as 0-1,32-33. Not with count.",
    )
    count: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None,
        description="How many CPUs to reserve; they are taken whole cores first from the lowest. "
        "Not with cpus. With neither, the node's capacity less its allocatable CPU is reserved, "
        "rounded up, at least 1.",
    )
    strict: bool = Field(
        default=False,
        description="True takes the reserved CPUs out of the shared pool too, so that only the "
        "system itself runs there (the kubelet's strict-cpu-reservation).",
    )


class Options(WireModel):
    """The kubelet's options of the static CPU policy: same meaning, same incompatibilities."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            *(
                rule(
                    f"!(self.?{other}.orValue(false)"
                    " && self.?distributeCPUsAcrossCores.orValue(false))",
                    f"{other} and distributeCPUsAcrossCores exclude each other: set only one",
                    ".distributeCPUsAcrossCores",
                )
                for other in (
                    "fullPCPUsOnly",
                    "distributeCPUsAcrossNUMA",
                    "preferAlignCPUsByUncoreCache",
                )
            ),
            rule(
                "!(self.?preferAlignCPUsByUncoreCache.orValue(false)"
                " && self.?distributeCPUsAcrossNUMA.orValue(false))",
                "preferAlignCPUsByUncoreCache and distributeCPUsAcrossNUMA exclude each other:"
                " set only one",
                ".preferAlignCPUsByUncoreCache",
            ),
        )
    )
    full_pcpus_only: bool = Field(
        default=False,
        alias="fullPCPUsOnly",
        description="Give out whole physical cores only; a request that is not a multiple of the "
        "threads of a core is refused (the kubelet's full-pcpus-only).",
    )
    distribute_cpus_across_numa: bool = Field(
        default=False,
        alias="distributeCPUsAcrossNUMA",
        description="Where more than one NUMA node is needed, take evenly from each "
        "(the kubelet's distribute-cpus-across-numa).",
    )
    align_by_socket: bool = Field(
        default=False,
        description="Prefer CPUs of one socket where one NUMA node is too small (the kubelet's "
        "align-by-socket). Not with topology.policy SingleNUMANode.",
    )
    distribute_cpus_across_cores: bool = Field(
        default=False,
        alias="distributeCPUsAcrossCores",
        description="Spread CPUs over as many physical cores as possible (the kubelet's "
        "distribute-cpus-across-cores). Not with the other options that pack or spread.",
    )
    prefer_align_cpus_by_uncore_cache: bool = Field(
        default=False,
        alias="preferAlignCPUsByUncoreCache",
        description="Prefer CPUs that share one uncore (L3) cache, without refusing others (the "
        "kubelet's prefer-align-cpus-by-uncorecache).",
    )


class TopologyPolicy(WireModel):
    """How CPUs, memory and huge pages must lie together: the kubelet's Topology Manager."""

    policy: Literal["None", "BestEffort", "Restricted", "SingleNUMANode"] = Field(
        default="None",
        description="None: no alignment. BestEffort: align where possible. Restricted: refuse "
        "where the preferred alignment cannot be had. SingleNUMANode: one NUMA node or refused.",
    )
    scope: Literal["Container", "Pod"] = Field(
        default="Container",
        description="Container aligns each container by itself; Pod puts all of a pod's "
        "containers on a common set of NUMA nodes.",
    )
    prefer_closest_numa_nodes: bool = Field(
        default=False,
        alias="preferClosestNUMANodes",
        description="Where several NUMA nodes are needed, prefer those nearest to each other (the "
        "kubelet's prefer-closest-numa-nodes).",
    )
    max_allowable_numa_nodes: int = Field(
        default=8,
        alias="maxAllowableNUMANodes",
        ge=8,
        le=1024,
        description="Accepted so that kubelet settings carry over (max-allowable-numa-nodes). "
        "numapin's own search is bounded on any machine and needs no limit.",
    )


class MemoryReservation(WireModel):
    """Memory of one NUMA node kept for the system."""

    numa_node: int = Field(ge=0, le=1023, description="The NUMA node's number.")
    memory: Quantity | None = Field(
        default=None, description="Ordinary memory kept back, such as 1Gi."
    )
    hugepages: dict[str, Quantity] = Field(
        default_factory=dict,
        description="Huge pages kept back: page size, such as 2Mi, to a quantity of memory.",
        max_length=8,
        json_schema_extra=rules(
            rule(
                f"self.all(size, size.matches('{HUGEPAGE_SIZE}'))",
                "each key is a page size such as 2Mi or 1Gi",
            )
        ),
    )


class MemoryPolicy(WireModel):
    """How memory and huge pages are bound to NUMA nodes."""

    policy: Literal["None", "Static", "Preferred", "SingleNUMA"] = Field(
        default="None",
        description="None: memory is left alone. Static: the kubelet's Memory Manager, aligned by "
        "topology.policy. Preferred: one NUMA node, else the fewest, never refused for locality. "
        "SingleNUMA: one NUMA node or refused, whatever topology.policy says.",
    )
    reserved: tuple[MemoryReservation, ...] = Field(
        default=(),
        description="Memory of each NUMA node kept for the system, off what can be bound.",
        max_length=128,
        json_schema_extra=keyed_list("numaNode"),
    )


class PodSelection(WireModel):
    """Which pods may get exclusive CPUs."""

    namespace_selector: LabelSelector | None = Field(
        default=None, description="Labels of the pod's namespace; unset or empty means all."
    )
    pod_selector: LabelSelector | None = Field(
        default=None, description="Labels of the pod; unset or empty means all."
    )
    qos_classes: tuple[Literal["Guaranteed", "Burstable"], ...] = Field(
        default=("Guaranteed",),
        description="QoS classes that may get exclusive CPUs. A BestEffort pod requests none.",
        min_length=1,
        max_length=2,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )


class CpuPolicySpec(WireModel):
    """What the nodes of this policy do with CPUs and memory."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!(self.?options.?alignBySocket.orValue(false)"
                " && self.?topology.?policy.orValue('None') == 'SingleNUMANode')",
                "options.alignBySocket contradicts topology.policy SingleNUMANode: drop one",
                ".options.alignBySocket",
            ),
        )
    )
    node_selector: dict[str, LabelValue] = Field(
        default_factory=dict,
        description="Labels of the nodes this policy is for; empty means every node. Where "
        "several policies select a node, the higher priority, then the older, then the name wins.",
        max_length=64,
        json_schema_extra=label_map_rules(),
    )
    priority: int = Field(
        default=0,
        ge=-(2**31),
        le=2**31 - 1,
        description="Which policy wins where several select a node: the higher number.",
        json_schema_extra={"format": "int32"},
    )
    mode: Literal["Static", "None", "Dynamic"] = Field(
        default="Static",
        description="Static gives exclusive CPUs for a container's life. None leaves cpusets alone "
        "and gives back what numapin set. Dynamic is not supported yet.",
    )
    reserved: Reserved = Field(
        default_factory=Reserved, description="CPUs kept for the system: never given out."
    )
    options: Options = Field(
        default_factory=Options, description="The kubelet's options of the static CPU policy."
    )
    topology: TopologyPolicy = Field(
        default_factory=TopologyPolicy,
        description="How CPUs, memory and huge pages must lie together (Topology Manager).",
    )
    memory: MemoryPolicy = Field(
        default_factory=MemoryPolicy,
        description="How memory and huge pages are bound to NUMA nodes (Memory Manager).",
    )
    pods: PodSelection = Field(
        default_factory=PodSelection, description="Which pods may get exclusive CPUs."
    )
    cpu_quota: Literal["Unlimited", "Keep"] = Field(
        default="Unlimited",
        description="Unlimited lifts the CFS quota from containers with exclusive CPUs and from "
        "their pod's cgroup, so that they are never throttled. Keep leaves it.",
    )
    isolation: Literal["Cpuset", "Partition", "IsolatedPartition"] = Field(
        default="Cpuset",
        description="Cpuset keeps others off by their cpusets. Partition and IsolatedPartition "
        "(cgroup v2 partitions) are not supported yet.",
    )
    on_unsatisfiable: Literal["Share", "Evict", "Hold"] = Field(
        default="Share",
        description="What becomes of a pod that cannot be placed. Share: it runs in the shared "
        "pool. Evict: it is evicted. Hold is not supported yet.",
    )


class CpuPolicy(WireModel):
    """CpuPolicy says which containers of which nodes get CPUs and nearby memory of their own."""

    metadata: dict[str, Any] = Field(default_factory=dict)
    spec: CpuPolicySpec = Field(
        description="What the nodes of this policy do with CPUs and memory.",
    )
    status: CpuPolicyStatus | None = Field(
        default=None, description="What came of the policy; written by the operator."
    )
