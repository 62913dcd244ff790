"""A NodeAssignment as the operator holds it: plain values with the fields of the models.

They take a fifth of the memory of the models. `make schema` writes this file from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import intern
from typing import Any

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.meta.derived import HasExclusiveCpus, HasRefusals, OfContainer


@dataclass(frozen=True, slots=True)
class Condition:
    """One aspect of an object's state. Source: Kubernetes `metav1.Condition`."""

    type: str
    status: str
    last_transition_time: str
    reason: str
    observed_generation: int = 0
    message: str = ""

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "Condition":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            intern(wire["type"]),
            intern(wire["status"]),
            wire["lastTransitionTime"],
            intern(wire["reason"]),
            wire.get("observedGeneration", 0),
            wire.get("message", ""),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "type": self.type,
            "status": self.status,
            "observedGeneration": self.observed_generation,
            "lastTransitionTime": self.last_transition_time,
            "reason": self.reason,
            "message": self.message,
        }


@dataclass(frozen=True, slots=True)
class FreeHugepages:
    """The huge pages of one NUMA node that the kernel has free."""

    numa_node: int
    pages: Mapping[str, int]

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "FreeHugepages":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            wire["numaNode"],
            dict(wire["pages"]),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "numaNode": self.numa_node,
            "pages": dict(self.pages),
        }


@dataclass(frozen=True, slots=True)
class KubeletContainer(OfContainer):
    """The CPUs and the NUMA nodes that the kubelet itself has given to a container."""

    pod_uid: str
    container: str
    cpus: CpuSet
    mems: MemSet = MemSet()

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "KubeletContainer":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            wire["podUID"],
            intern(wire["container"]),
            CpuSet.parse(wire["cpus"]),
            MemSet.parse(wire.get("mems", "")),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "podUID": self.pod_uid,
            "container": self.container,
            "cpus": str(self.cpus),
            "mems": str(self.mems),
        }


@dataclass(frozen=True, slots=True)
class ClaimedCpus:
    """The CPUs that the DRA driver dra.cpu has given to a ResourceClaim."""

    claim_uid: str
    cpus: CpuSet

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "ClaimedCpus":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            wire["claimUID"],
            CpuSet.parse(wire["cpus"]),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "claimUID": self.claim_uid,
            "cpus": str(self.cpus),
        }


@dataclass(frozen=True, slots=True)
class DeviceCount:
    """How many healthy devices of one resource are near the same NUMA nodes."""

    resource: str
    count: int
    numa_nodes: MemSet = MemSet()

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "DeviceCount":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            intern(wire["resource"]),
            wire["count"],
            MemSet.parse(wire.get("numaNodes", "")),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "resource": self.resource,
            "numaNodes": str(self.numa_nodes),
            "count": self.count,
        }


@dataclass(frozen=True, slots=True)
class ContainerDevices(OfContainer):
    """The devices of one resource that a container has near the same NUMA nodes."""

    pod_uid: str
    container: str
    resource: str
    count: int
    numa_nodes: MemSet = MemSet()
    ids: tuple[str, ...] = ()

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "ContainerDevices":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            wire["podUID"],
            intern(wire["container"]),
            intern(wire["resource"]),
            wire["count"],
            MemSet.parse(wire.get("numaNodes", "")),
            tuple(wire.get("ids", ())),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "podUID": self.pod_uid,
            "container": self.container,
            "resource": self.resource,
            "numaNodes": str(self.numa_nodes),
            "count": self.count,
            "ids": list(self.ids),
        }


@dataclass(frozen=True, slots=True)
class UnnamedDevices:
    """The devices of one resource that a container of a pod has whose UID is not known yet."""

    namespace: str
    pod: str
    container: str
    resource: str
    count: int
    numa_nodes: MemSet = MemSet()

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "UnnamedDevices":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            intern(wire["namespace"]),
            wire["pod"],
            intern(wire["container"]),
            intern(wire["resource"]),
            wire["count"],
            MemSet.parse(wire.get("numaNodes", "")),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "namespace": self.namespace,
            "pod": self.pod,
            "container": self.container,
            "resource": self.resource,
            "numaNodes": str(self.numa_nodes),
            "count": self.count,
        }


@dataclass(frozen=True, slots=True)
class DevicesStatus:
    """The devices of the node, as the kubelet's podresources API lists them.

    Resources of which no device has a NUMA node are left out: they are no preference.
    """

    message: str | None = None
    resources: tuple[DeviceCount, ...] = ()
    containers: tuple[ContainerDevices, ...] = ()
    unnamed: tuple[UnnamedDevices, ...] = ()
    unnamed_pods: tuple[str, ...] = ()

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "DevicesStatus":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            wire.get("message"),
            tuple(map(DeviceCount.from_wire, wire.get("resources", ()))),
            tuple(map(ContainerDevices.from_wire, wire.get("containers", ()))),
            tuple(map(UnnamedDevices.from_wire, wire.get("unnamed", ()))),
            tuple(wire.get("unnamedPods", ())),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        wire: dict[str, Any] = {}
        if self.message is not None:
            wire["message"] = self.message
        wire["resources"] = [one.to_wire() for one in self.resources]
        wire["containers"] = [one.to_wire() for one in self.containers]
        wire["unnamed"] = [one.to_wire() for one in self.unnamed]
        wire["unnamedPods"] = list(self.unnamed_pods)
        return wire


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Tasks or interrupts of one name that come to exclusive CPUs again and again."""

    kind: str
    name: str
    cpus: CpuSet

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "Disturbance":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            wire["kind"],
            wire["name"],
            CpuSet.parse(wire["cpus"]),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "kind": self.kind,
            "name": self.name,
            "cpus": str(self.cpus),
        }


@dataclass(frozen=True, slots=True)
class UnboundMemory:
    """Where the memory of a pod is that is not bound to NUMA nodes."""

    pod_uid: str
    bytes: Mapping[str, int]

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "UnboundMemory":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            wire["podUID"],
            dict(wire["bytes"]),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "podUID": self.pod_uid,
            "bytes": dict(self.bytes),
        }


@dataclass(frozen=True, slots=True)
class CacheStatus:
    """Which share of caches and memory bandwidth exclusive CPUs have, read from resctrl."""

    cpus: CpuSet = CpuSet()
    schemata: str = ""
    message: str | None = None

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "CacheStatus":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            CpuSet.parse(wire.get("cpus", "")),
            wire.get("schemata", ""),
            wire.get("message"),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        wire: dict[str, Any] = {
            "cpus": str(self.cpus),
            "schemata": self.schemata,
        }
        if self.message is not None:
            wire["message"] = self.message
        return wire


@dataclass(frozen=True, slots=True)
class IsolationStatus:
    """The cpuset partitions of exclusive containers, read from the kernel."""

    partitions: CpuSet = CpuSet()
    isolated: CpuSet = CpuSet()

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "IsolationStatus":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            CpuSet.parse(wire.get("partitions", "")),
            CpuSet.parse(wire.get("isolated", "")),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "partitions": str(self.partitions),
            "isolated": str(self.isolated),
        }


@dataclass(frozen=True, slots=True)
class ContainerStatus(OfContainer):
    """The state of one container of the spec, read from the kernel."""

    pod_uid: str
    container: str
    cpus: CpuSet
    mems: MemSet = MemSet()
    exclusive: bool = False

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "ContainerStatus":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            wire["podUID"],
            intern(wire["container"]),
            CpuSet.parse(wire["cpus"]),
            MemSet.parse(wire.get("mems", "")),
            wire.get("exclusive", False),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "podUID": self.pod_uid,
            "container": self.container,
            "cpus": str(self.cpus),
            "mems": str(self.mems),
            "exclusive": self.exclusive,
        }


@dataclass(frozen=True, slots=True)
class NodeAssignmentStatus:
    """The state of the node, read from the kernel, as an enforcer of 0.1 reports it."""

    conditions: tuple[Condition, ...] = ()
    free_hugepages: tuple[FreeHugepages, ...] = ()
    kubelet_containers: tuple[KubeletContainer, ...] = ()
    claims: tuple[ClaimedCpus, ...] = ()
    devices: DevicesStatus | None = None
    disturbances: tuple[Disturbance, ...] = ()
    unbound_memory: tuple[UnboundMemory, ...] = ()
    cache: CacheStatus | None = None
    isolation: IsolationStatus | None = None
    observed_generation: int = 0
    containers: tuple[ContainerStatus, ...] = ()
    running: tuple[str, ...] = ()

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "NodeAssignmentStatus":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            tuple(map(Condition.from_wire, wire.get("conditions", ()))),
            tuple(map(FreeHugepages.from_wire, wire.get("freeHugepages", ()))),
            tuple(map(KubeletContainer.from_wire, wire.get("kubeletContainers", ()))),
            tuple(map(ClaimedCpus.from_wire, wire.get("claims", ()))),
            DevicesStatus.from_wire(found) if (found := wire.get("devices")) is not None else None,
            tuple(map(Disturbance.from_wire, wire.get("disturbances", ()))),
            tuple(map(UnboundMemory.from_wire, wire.get("unboundMemory", ()))),
            CacheStatus.from_wire(found) if (found := wire.get("cache")) is not None else None,
            IsolationStatus.from_wire(found)
            if (found := wire.get("isolation")) is not None
            else None,
            wire.get("observedGeneration", 0),
            tuple(map(ContainerStatus.from_wire, wire.get("containers", ()))),
            tuple(wire.get("running", ())),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        wire: dict[str, Any] = {
            "conditions": [one.to_wire() for one in self.conditions],
            "freeHugepages": [one.to_wire() for one in self.free_hugepages],
            "kubeletContainers": [one.to_wire() for one in self.kubelet_containers],
            "claims": [one.to_wire() for one in self.claims],
        }
        if self.devices is not None:
            wire["devices"] = self.devices.to_wire()
        wire["disturbances"] = [one.to_wire() for one in self.disturbances]
        wire["unboundMemory"] = [one.to_wire() for one in self.unbound_memory]
        if self.cache is not None:
            wire["cache"] = self.cache.to_wire()
        if self.isolation is not None:
            wire["isolation"] = self.isolation.to_wire()
        wire["observedGeneration"] = self.observed_generation
        wire["containers"] = [one.to_wire() for one in self.containers]
        wire["running"] = list(self.running)
        return wire


@dataclass(frozen=True, slots=True)
class PolicyRef:
    """The policy that the assignment was made from."""

    name: str
    generation: int
    since: int | None = None
    uid: str | None = None
    hardware: str | None = None

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "PolicyRef":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            wire["name"],
            wire["generation"],
            wire.get("since"),
            wire.get("uid"),
            wire.get("hardware"),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        wire: dict[str, Any] = {
            "name": self.name,
            "generation": self.generation,
        }
        if self.since is not None:
            wire["since"] = self.since
        if self.uid is not None:
            wire["uid"] = self.uid
        if self.hardware is not None:
            wire["hardware"] = self.hardware
        return wire


@dataclass(frozen=True, slots=True)
class Pools:
    """The CPUs of the node that are not exclusive to a container."""

    reserved: CpuSet
    shared: CpuSet

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "Pools":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            CpuSet.parse(wire["reserved"]),
            CpuSet.parse(wire["shared"]),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "reserved": str(self.reserved),
            "shared": str(self.shared),
        }


@dataclass(frozen=True, slots=True)
class System:
    """What keeps off exclusive CPUs besides containers."""

    processes: str = "Leave"
    interrupts: str = "Leave"

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "System":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            wire.get("processes", "Leave"),
            wire.get("interrupts", "Leave"),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "processes": self.processes,
            "interrupts": self.interrupts,
        }


@dataclass(frozen=True, slots=True)
class ExclusiveClass:
    """What exclusive CPUs have."""

    l3_percent: int = 0
    memory_bandwidth_percent: int = 100

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "ExclusiveClass":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            wire.get("l3Percent", 0),
            wire.get("memoryBandwidthPercent", 100),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "l3Percent": self.l3_percent,
            "memoryBandwidthPercent": self.memory_bandwidth_percent,
        }


@dataclass(frozen=True, slots=True)
class OthersClass:
    """What all other CPUs have, beside exclusive ones."""

    memory_bandwidth_percent: int = 100

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "OthersClass":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            wire.get("memoryBandwidthPercent", 100),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "memoryBandwidthPercent": self.memory_bandwidth_percent,
        }


@dataclass(frozen=True, slots=True)
class CacheClasses:
    """The two classes of CPUs."""

    exclusive: ExclusiveClass = field(default_factory=ExclusiveClass)
    others: OthersClass = field(default_factory=OthersClass)

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "CacheClasses":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            ExclusiveClass.from_wire(wire.get("exclusive", {})),
            OthersClass.from_wire(wire.get("others", {})),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "exclusive": self.exclusive.to_wire(),
            "others": self.others.to_wire(),
        }


@dataclass(frozen=True, slots=True)
class Cache:
    """How caches and memory bandwidth are shared, by resctrl of the kernel."""

    classes: CacheClasses = field(default_factory=CacheClasses)

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "Cache":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            CacheClasses.from_wire(wire.get("classes", {})),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "classes": self.classes.to_wire(),
        }


@dataclass(frozen=True, slots=True)
class LabelSelectorRequirement:
    """One expression of a label selector. Source: Kubernetes `metav1.LabelSelectorRequirement`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "LabelSelectorRequirement":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            wire["key"],
            wire["operator"],
            tuple(wire.get("values", ())),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "key": self.key,
            "operator": self.operator,
            "values": list(self.values),
        }


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A query over labels; an empty one matches everything. Source: `metav1.LabelSelector`."""

    match_labels: Mapping[str, str] = field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "LabelSelector":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            dict(wire.get("matchLabels", {})),
            tuple(map(LabelSelectorRequirement.from_wire, wire.get("matchExpressions", ()))),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "matchLabels": dict(self.match_labels),
            "matchExpressions": [one.to_wire() for one in self.match_expressions],
        }


@dataclass(frozen=True, slots=True)
class StartGate:
    """Which containers wait for their assignment before they are made, and how long."""

    timeout_milliseconds: int
    qos_classes: tuple[str, ...]
    pod_selector: LabelSelector | None = None
    memory: bool = False

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "StartGate":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            wire["timeoutMilliseconds"],
            tuple(wire["qosClasses"]),
            LabelSelector.from_wire(found)
            if (found := wire.get("podSelector")) is not None
            else None,
            wire.get("memory", False),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        wire: dict[str, Any] = {
            "timeoutMilliseconds": self.timeout_milliseconds,
        }
        if self.pod_selector is not None:
            wire["podSelector"] = self.pod_selector.to_wire()
        wire["qosClasses"] = list(self.qos_classes)
        wire["memory"] = self.memory
        return wire


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """Memory assigned to a container on one NUMA node, or on several together."""

    numa_nodes: tuple[int, ...]
    resource: str
    bytes: int

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "MemoryBlock":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            tuple(wire["numaNodes"]),
            intern(wire["resource"]),
            wire["bytes"],
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "numaNodes": list(self.numa_nodes),
            "resource": self.resource,
            "bytes": self.bytes,
        }


@dataclass(frozen=True, slots=True)
class Moving:
    """A move in progress: the container has its new CPUs, and the old ones leave."""

    leaving: CpuSet
    leaving_mems: MemSet = MemSet()
    at: str | None = None
    namespace: str | None = None
    pod: str | None = None

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "Moving":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            CpuSet.parse(wire["leaving"]),
            MemSet.parse(wire.get("leavingMems", "")),
            wire.get("at"),
            wire.get("namespace"),
            wire.get("pod"),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        wire: dict[str, Any] = {
            "leaving": str(self.leaving),
            "leavingMems": str(self.leaving_mems),
        }
        if self.at is not None:
            wire["at"] = self.at
        if self.namespace is not None:
            wire["namespace"] = self.namespace
        if self.pod is not None:
            wire["pod"] = self.pod
        return wire


@dataclass(frozen=True, slots=True)
class ContainerAssignment(OfContainer):
    """The CPUs and NUMA nodes of one container."""

    pod_uid: str
    namespace: str
    pod: str
    container: str
    cpus: CpuSet = CpuSet()
    mems: MemSet = MemSet()
    exclusive: bool = False
    memory: tuple[MemoryBlock, ...] = ()
    grants: tuple[CpuSet, ...] | None = None
    outdated: bool | None = None
    claimed: bool | None = None
    moving: Moving | None = None
    moved_at: str | None = None

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "ContainerAssignment":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            wire["podUID"],
            intern(wire["namespace"]),
            wire["pod"],
            intern(wire["container"]),
            CpuSet.parse(wire.get("cpus", "")),
            MemSet.parse(wire.get("mems", "")),
            wire.get("exclusive", False),
            tuple(map(MemoryBlock.from_wire, wire.get("memory", ()))),
            tuple(map(CpuSet.parse, found)) if (found := wire.get("grants")) is not None else None,
            wire.get("outdated"),
            wire.get("claimed"),
            Moving.from_wire(found) if (found := wire.get("moving")) is not None else None,
            wire.get("movedAt"),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        wire: dict[str, Any] = {
            "podUID": self.pod_uid,
            "namespace": self.namespace,
            "pod": self.pod,
            "container": self.container,
            "cpus": str(self.cpus),
            "mems": str(self.mems),
            "exclusive": self.exclusive,
            "memory": [one.to_wire() for one in self.memory],
        }
        if self.grants is not None:
            wire["grants"] = [str(one) for one in self.grants]
        if self.outdated is not None:
            wire["outdated"] = self.outdated
        if self.claimed is not None:
            wire["claimed"] = self.claimed
        if self.moving is not None:
            wire["moving"] = self.moving.to_wire()
        if self.moved_at is not None:
            wire["movedAt"] = self.moved_at
        return wire


@dataclass(frozen=True, slots=True)
class Refusal:
    """A container that requested exclusive CPUs or local memory and could not get them."""

    pod_uid: str
    namespace: str
    pod: str
    reason: str
    message: str
    container: str | None = None
    requested: str | None = None

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "Refusal":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            wire["podUID"],
            intern(wire["namespace"]),
            wire["pod"],
            intern(wire["reason"]),
            wire["message"],
            wire.get("container"),
            wire.get("requested"),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        wire: dict[str, Any] = {
            "podUID": self.pod_uid,
            "namespace": self.namespace,
            "pod": self.pod,
        }
        if self.container is not None:
            wire["container"] = self.container
        wire["reason"] = self.reason
        wire["message"] = self.message
        if self.requested is not None:
            wire["requested"] = self.requested
        return wire


@dataclass(frozen=True, slots=True)
class NodeAssignmentSpec(HasExclusiveCpus, HasRefusals):
    """The desired state of the node; written only by the operator.

    `pools` is unset until the node's topology is known, and where `mode` is None.
    """

    policy: PolicyRef | None = None
    mode: str = "Static"
    pools: Pools | None = None
    cpu_quota: str = "Unlimited"
    isolation: str = "Cpuset"
    system: System | None = None
    cache: Cache | None = None
    start_gate: StartGate | None = None
    containers: tuple[ContainerAssignment, ...] = ()
    refused: tuple[Refusal, ...] = ()
    refused_omitted: int | None = None
    refused_resizes: tuple[Refusal, ...] | None = None
    unassigned: tuple[str, ...] = ()
    confined: tuple[str, ...] | None = None
    release_at: str | None = None

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "NodeAssignmentSpec":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            PolicyRef.from_wire(found) if (found := wire.get("policy")) is not None else None,
            wire.get("mode", "Static"),
            Pools.from_wire(found) if (found := wire.get("pools")) is not None else None,
            wire.get("cpuQuota", "Unlimited"),
            wire.get("isolation", "Cpuset"),
            System.from_wire(found) if (found := wire.get("system")) is not None else None,
            Cache.from_wire(found) if (found := wire.get("cache")) is not None else None,
            StartGate.from_wire(found) if (found := wire.get("startGate")) is not None else None,
            tuple(map(ContainerAssignment.from_wire, wire.get("containers", ()))),
            tuple(map(Refusal.from_wire, wire.get("refused", ()))),
            wire.get("refusedOmitted"),
            tuple(map(Refusal.from_wire, found))
            if (found := wire.get("refusedResizes")) is not None
            else None,
            tuple(wire.get("unassigned", ())),
            tuple(found) if (found := wire.get("confined")) is not None else None,
            wire.get("releaseAt"),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        wire: dict[str, Any] = {}
        if self.policy is not None:
            wire["policy"] = self.policy.to_wire()
        wire["mode"] = self.mode
        if self.pools is not None:
            wire["pools"] = self.pools.to_wire()
        wire["cpuQuota"] = self.cpu_quota
        wire["isolation"] = self.isolation
        if self.system is not None:
            wire["system"] = self.system.to_wire()
        if self.cache is not None:
            wire["cache"] = self.cache.to_wire()
        if self.start_gate is not None:
            wire["startGate"] = self.start_gate.to_wire()
        wire["containers"] = [one.to_wire() for one in self.containers]
        wire["refused"] = [one.to_wire() for one in self.refused]
        if self.refused_omitted is not None:
            wire["refusedOmitted"] = self.refused_omitted
        if self.refused_resizes is not None:
            wire["refusedResizes"] = [one.to_wire() for one in self.refused_resizes]
        wire["unassigned"] = list(self.unassigned)
        if self.confined is not None:
            wire["confined"] = list(self.confined)
        if self.release_at is not None:
            wire["releaseAt"] = self.release_at
        return wire
