"""CpuPolicy, which administrators write: the source of its CRD's schema."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from numapin_api.cache.model import Cache
from numapin_api.cpuset import CpuSet
from numapin_api.duration import DURATION_PATTERN
from numapin_api.meta.cel_rules import label_map_rules, readable_cpu_list, rule, rules
from numapin_api.meta.modes import Mode
from numapin_api.meta.selectors import LabelSelector, LabelValue
from numapin_api.meta.wire import (
    NOT_NULL,
    Duration,
    Quantity,
    WireModel,
    keyed_list,
    never_null,
)
from numapin_api.moves.model import Dynamic
from numapin_api.starts.model import MAX_START_TIMEOUT
from numapin_api.status.policy import CpuPolicyStatus
from numapin_api.system.model import System

WrittenCpus = Annotated[CpuSet, Field(min_length=1, json_schema_extra=readable_cpu_list)]
HUGEPAGE_SIZE = r"^[1-9][0-9]*(Ki|Mi|Gi|Ti)$"


class Reserved(WireModel):
    """CPUs reserved for the system: never assigned exclusively."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!(has(self.cpus) && has(self.count))",
                "give cpus or count, not both: cpus names the CPUs, count lets numapin choose them",
            )
        )
    )
    cpus: WrittenCpus | None = Field(
        default=None,
        description="The reserved CPUs as a list, such as 0-1,32-33. Conflicts with count.",
    )
    count: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None,
        description="The number of CPUs to reserve: the lowest whole cores first, or with "
        "options.distributeCPUsAcrossCores the CPUs with the lowest ids. Conflicts with cpus. If "
        "neither is set, numapin reserves the node's CPU capacity minus its allocatable CPU, "
        "rounded up, and at least 1.",
    )
    strict: bool = Field(
        default=False,
        description="If true, the reserved CPUs are not part of the shared pool either, so that "
        "no container runs on them (the kubelet's strict-cpu-reservation).",
    )


class Options(WireModel):
    """Options of the static CPU policy, with the meaning and the conflicts of the kubelet's."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            *(
                rule(
                    f"!(self.?{other}.orValue(false)"
                    " && self.?distributeCPUsAcrossCores.orValue(false))",
                    f"{other} and distributeCPUsAcrossCores are mutually exclusive: set only one",
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
                "preferAlignCPUsByUncoreCache and distributeCPUsAcrossNUMA are mutually "
                "exclusive: set only one",
                ".preferAlignCPUsByUncoreCache",
            ),
        )
    )
    full_pcpus_only: bool = Field(
        default=False,
        alias="fullPCPUsOnly",
        description="Assign whole physical cores only. A container whose CPU request is not a "
        "multiple of the threads per core is refused (the kubelet's full-pcpus-only).",
    )
    distribute_cpus_across_numa: bool = Field(
        default=False,
        alias="distributeCPUsAcrossNUMA",
        description="If a container needs more than one NUMA node, take the same number of CPUs "
        "from each (the kubelet's distribute-cpus-across-numa). With memory.policy Preferred, "
        "memory and huge pages are divided likewise.",
    )
    align_by_socket: bool = Field(
        default=False,
        description="If one NUMA node is too small, prefer CPUs of one socket (the kubelet's "
        "align-by-socket). Conflicts with topology.policy SingleNUMANode.",
    )
    distribute_cpus_across_cores: bool = Field(
        default=False,
        alias="distributeCPUsAcrossCores",
        description="Spread CPUs over as many physical cores as possible (the kubelet's "
        "distribute-cpus-across-cores). Conflicts with fullPCPUsOnly, distributeCPUsAcrossNUMA "
        "and preferAlignCPUsByUncoreCache.",
    )
    prefer_align_cpus_by_uncore_cache: bool = Field(
        default=False,
        alias="preferAlignCPUsByUncoreCache",
        description="Prefer CPUs that share one uncore (L3) cache; other CPUs are used if these "
        "do not suffice (the kubelet's prefer-align-cpus-by-uncorecache). Conflicts with "
        "distributeCPUsAcrossNUMA and distributeCPUsAcrossCores.",
    )


class TopologyPolicy(WireModel):
    """How CPUs, memory and huge pages are aligned, as by the kubelet's Topology Manager."""

    policy: Literal["None", "BestEffort", "Restricted", "SingleNUMANode"] = Field(
        default="None",
        description="None: no alignment. BestEffort: align if possible. Restricted: refuse a "
        "container that cannot have the preferred alignment. SingleNUMANode: refuse a container "
        "that does not fit on one NUMA node. With memory.policy Preferred only its CPUs count; "
        "memory.policy SingleNUMA refuses for memory too.",
    )
    scope: Literal["Container", "Pod"] = Field(
        default="Container",
        description="Container: each container is aligned separately. Pod: all containers of a "
        "pod share one set of NUMA nodes.",
    )
    prefer_closest_numa_nodes: bool = Field(
        default=False,
        alias="preferClosestNUMANodes",
        description="If several NUMA nodes are needed, prefer those closest to each other (the "
        "kubelet's prefer-closest-numa-nodes).",
    )
    max_allowable_numa_nodes: Annotated[int, Field(ge=8, le=1024)] | None = Field(
        default=None,
        alias="maxAllowableNUMANodes",
        description="Deprecated: has no effect, leave it out. numapin places containers on any "
        "number of NUMA nodes, for which the kubelet needs max-allowable-numa-nodes.",
    )


class MemoryReservation(WireModel):
    """Memory of one NUMA node that is reserved for the system."""

    numa_node: int = Field(ge=0, le=1023, description="The ID of the NUMA node.")
    memory: Quantity | None = Field(
        default=None, description="The reserved memory, without huge pages, such as 1Gi."
    )
    hugepages: dict[str, Quantity] = Field(
        default_factory=dict,
        description="The reserved huge pages: page size, such as 2Mi, to a quantity of memory.",
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

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!(self.?policy.orValue('None') == 'Static'"
                " && self.?nodesWithoutCPUs.orValue('') == 'Spill')",
                "nodesWithoutCPUs Spill conflicts with policy Static, which binds memory as the "
                "kubelet does: write Any or Never",
                ".nodesWithoutCPUs",
            )
        )
    )
    policy: Literal["None", "Static", "Preferred", "SingleNUMA"] = Field(
        default="None",
        description="None: memory is not bound. Static: as by the kubelet's Memory Manager, "
        "aligned by topology.policy. Preferred: one NUMA node, else as few as possible, with most "
        "of the container's CPUs and then nearest to them; no container is refused because of "
        "where its memory is, and topology.policy refuses for CPUs alone. SingleNUMA: one NUMA "
        "node, or the container is refused, regardless of topology.policy.",
    )
    nodes_without_cpus: Annotated[Literal["Never", "Spill", "Any"] | None, NOT_NULL] = Field(
        default=None,
        alias="nodesWithoutCPUs",
        description="Whether containers are bound to NUMA nodes that have memory and no CPUs, such "
        "as CXL and high-bandwidth memory. Never: no. Spill: if the NUMA nodes with CPUs have no "
        "room. Any: as to any other. If unset, Never with policy Preferred and SingleNUMA, and "
        "with Static Any, as the kubelet does.",
        json_schema_extra=never_null,
    )
    reserved: tuple[MemoryReservation, ...] = Field(
        default=(),
        description="Memory reserved for the system on each NUMA node; containers cannot have it. "
        "If unset, what the Node keeps back (capacity minus allocatable), in proportion to the "
        "memory of each NUMA node.",
        max_length=128,
        json_schema_extra=keyed_list("numaNode"),
    )


class PlacementPolicy(WireModel):
    """Which of several places is taken."""

    nodes: Literal["Pack", "Spread"] = Field(
        default="Pack",
        description="Which node a held pod gets (onUnsatisfiable: Hold) if it fits on several. "
        "Pack: the one with the fewest free CPUs. Spread: the one with the most.",
    )
    numa_nodes: Literal["None", "Packed", "Spread"] = Field(
        default="None",
        description="Which NUMA node a pod or container gets that fits on several of them, each "
        "alone. None: as with the kubelet, the lowest that topology.policy allows, or, with "
        "topology.policy None, what the CPU options say. Packed: the one of which most is given "
        "out, so that others stay whole. Spread: the one of which least is.",
    )
    pod_override: Literal["Forbid", "Allow"] = Field(
        default="Forbid",
        description="Allow: a pod chooses by its annotation numapin.io/numa-nodes (Packed or "
        "Spread) instead of numaNodes. Forbid: the annotation has no effect.",
    )
    pod_requests: bool = Field(
        default=False,
        description="If true, a pod says near what its CPUs and memory must be, by its annotations "
        "numapin.io/require-near and numapin.io/prefer-near: NUMA nodes, sockets, network "
        "interfaces, disks and PCI devices, such as numa/1,net/ens1f0. A pod that cannot be near "
        "what it requires is refused. If false, the annotations have no effect.",
    )


class PodSelection(WireModel):
    """The pods that may get exclusive CPUs."""

    namespace_selector: LabelSelector | None = Field(
        default=None,
        description="Selects namespaces by their labels; if unset or empty, all namespaces.",
    )
    pod_selector: LabelSelector | None = Field(
        default=None, description="Selects pods by their labels; if unset or empty, all pods."
    )
    qos_classes: tuple[Literal["Guaranteed", "Burstable"], ...] = Field(
        default=("Guaranteed",),
        description="QoS classes whose pods may get exclusive CPUs. BestEffort pods request none.",
        min_length=1,
        max_length=2,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    confined_namespaces: tuple[Annotated[str, Field(min_length=1, max_length=63)], ...] = Field(
        default=(),
        description="Namespaces whose pods run on the reserved CPUs alone, such as kube-system: "
        "they get no exclusive CPUs, whatever they request, and use none of the other shared CPUs. "
        "A pod that has CPUs or memory assigned keeps them until it ends.",
        max_length=64,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )


def _count_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


COUNT_PATTERN = r"^([1-9][0-9]{0,5}|([1-9][0-9]?|100)%)$"


class Rollout(WireModel):
    """How a change reaches the nodes."""

    max_concurrent: Annotated[
        str,
        BeforeValidator(_count_text),
        Field(
            pattern=COUNT_PATTERN,
            max_length=6,
            # pydantic leaves a pattern behind a validator out of the schema
            json_schema_extra={
                "x-kubernetes-int-or-string": True,
                "pattern": COUNT_PATTERN,
                "minimum": 1,
                "maximum": 999_999,
            },
        ),
    ] = Field(
        default="10%",
        description="How many nodes change to this policy, or to another generation of it, at the "
        "same time: a number, or a percentage of the nodes that it governs, rounded up. The next "
        "node follows when an enforcer has accepted the change. None follows while a node that "
        "changed is stalled. The others keep what was in force. 100%: all at once, whatever "
        "becomes of them. Mode None reaches all nodes at once, and so does the release of nodes "
        "that no policy governs any more.",
    )


class Publish(WireModel):
    """What is written for other programs to read."""

    node_resource_topology: Literal["None", "Zones"] = Field(
        default="None",
        description="None: nothing. Zones: a NodeResourceTopology for each node, by which the "
        "scheduler plug-in NodeResourceTopologyMatch sees what each NUMA node has left. Its "
        "CustomResourceDefinition and a right of the operator are installed separately.",
    )


class CpuPolicySpec(WireModel):
    """How CPUs and memory are assigned on the nodes of this policy."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!(self.?options.?alignBySocket.orValue(false)"
                " && self.?topology.?policy.orValue('None') == 'SingleNUMANode')",
                "options.alignBySocket conflicts with topology.policy SingleNUMANode: remove one",
                ".options.alignBySocket",
            ),
            rule(
                "!(has(self.nodes) && has(self.nodeSelector) && size(self.nodeSelector) > 0)",
                "give nodes or nodeSelector, not both: nodes.matchLabels means what nodeSelector "
                "means",
                ".nodes",
            ),
            rule(
                f"!has(self.startTimeout) || !self.startTimeout.matches('{DURATION_PATTERN}')"
                " || duration(self.startTimeout) > duration('0s')"
                f" && duration(self.startTimeout) <= duration('{MAX_START_TIMEOUT}')",
                f"startTimeout is more than 0s and at most {MAX_START_TIMEOUT}: after 2s a "
                "container runtime asks no more",
                ".startTimeout",
            ),
        )
    )
    node_selector: dict[str, LabelValue] = Field(
        default_factory=dict,
        description="Labels of the nodes that the policy selects; if empty, every node. If several "
        "policies select a node, the one with the highest priority applies, then the oldest, then "
        "the first by name. Conflicts with nodes.",
        max_length=64,
        json_schema_extra=label_map_rules(),
    )
    nodes: LabelSelector | None = Field(
        default=None,
        description="Selects nodes by their labels, also by those that they do not have; if empty, "
        "every node. Conflicts with nodeSelector.",
    )
    priority: int = Field(
        default=0,
        ge=-(2**31),
        le=2**31 - 1,
        description="The policy with the highest number applies if several select the same node.",
        json_schema_extra={"format": "int32"},
    )
    mode: Mode = Field(
        default="Static",
        description="Static: a container has the same exclusive CPUs as long as it runs. None: "
        "every cgroup gets its parent's CPUs again, and numapin changes none. Dynamic: as Static, "
        "but a running container may be moved to other CPUs so that a pod gets the NUMA nodes that "
        "topology.policy demands. Audit: planned as with Static, and reported; nothing is written "
        "on the node, and no pod is told, held or evicted.",
    )
    dynamic: Dynamic = Field(
        default_factory=Dynamic,
        description="Which containers are moved with mode Dynamic, and how often; without effect "
        "in other modes.",
    )
    reserved: Reserved = Field(
        default_factory=Reserved,
        description="CPUs reserved for the system: never assigned exclusively.",
    )
    options: Options = Field(
        default_factory=Options, description="Options of the static CPU policy, as the kubelet's."
    )
    topology: TopologyPolicy = Field(
        default_factory=TopologyPolicy,
        description="How CPUs, memory and huge pages are aligned (Topology Manager).",
    )
    memory: MemoryPolicy = Field(
        default_factory=MemoryPolicy,
        description="How memory and huge pages are bound to NUMA nodes (Memory Manager).",
    )
    placement: PlacementPolicy = Field(
        default_factory=PlacementPolicy, description="Which of several places is taken."
    )
    pods: PodSelection = Field(
        default_factory=PodSelection, description="The pods that may get exclusive CPUs."
    )
    isolated_cpus: Literal["Ignore", "ExclusiveOnly"] = Field(
        default="Ignore",
        alias="isolatedCPUs",
        description="Ignore: CPUs that the kernel isolates (isolcpus) are like any other, as for "
        "the kubelet. ExclusiveOnly: exclusive containers get them first, and nothing else runs "
        "on them.",
    )
    cpu_quota: Literal["Unlimited", "Keep"] = Field(
        default="Unlimited",
        description="Unlimited: containers with exclusive CPUs, and their pods, have no CFS quota, "
        "so that they are never throttled. Keep: the quota stays as it is.",
    )
    isolation: Literal["Cpuset", "Partition", "IsolatedPartition"] = Field(
        default="Cpuset",
        description="Cpuset: the cpusets of other containers exclude exclusive CPUs. Partition: "
        "besides, each exclusive container is a cpuset partition, whose CPUs the kernel gives to "
        "no other process of the machine. IsolatedPartition: the scheduler balances no load there "
        "either: programs must pin their threads. Both need cgroup v2, Linux 6.7 or newer, and "
        "CAP_SYS_ADMIN for the enforcer; without, Cpuset is in force and the node is Stalled.",
    )
    system: System = Field(
        default_factory=System, description="What keeps off exclusive CPUs besides containers."
    )
    cache: Cache = Field(
        default_factory=Cache,
        description="How caches and memory bandwidth are shared, by resctrl of the kernel.",
    )
    rollout: Rollout = Field(default_factory=Rollout, description="How an edit reaches the nodes.")
    release_delay: Duration = Field(
        default="30s",
        description="How long a node keeps its assignment after the policy was deleted, its mode "
        "became None or the node is no longer selected, such as 30s or 1h30m. A policy that "
        "returns within that time finds its containers where they are.",
    )
    start_gate: Literal["None", "Wait"] = Field(
        default="None",
        description="None: a container starts when its runtime starts it. Wait: a container of a "
        "pod that pods selects waits for its assignment, for startTimeout at most, and is made "
        "with its CPUs and NUMA nodes; on nodes whose container runtime has NRI. Meanwhile the "
        "runtime starts no other container of the node.",
    )
    start_timeout: Duration = Field(
        default="1s",
        description="How long a container waits at most, such as 500ms: more than 0s, at most "
        f"{MAX_START_TIMEOUT}. After that it starts on shared CPUs, and gets its own later.",
    )
    on_unsatisfiable: Literal["Share", "Evict", "Hold"] = Field(
        default="Share",
        description="What happens to a pod that is refused CPUs or memory. Share: it runs in the "
        "shared pool. Evict: it is evicted. Hold: pods of namespaces that opt in are not bound "
        "before a node has a place for them; others, and those that are bound, as with Share.",
    )
    publish: Publish = Field(
        default_factory=Publish, description="What is written for other programs to read."
    )


class CpuPolicy(WireModel):
    """CpuPolicy defines which containers get exclusive CPUs and local memory on which nodes."""

    metadata: dict[str, Any] = Field(default_factory=dict)
    spec: CpuPolicySpec = Field(
        description="How CPUs and memory are assigned on the nodes of this policy.",
    )
    status: CpuPolicyStatus | None = Field(
        default=None, description="The most recently observed state; written by the operator."
    )
