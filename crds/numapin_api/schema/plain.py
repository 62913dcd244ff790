"""Spec and status of a NodeAssignment as plain values: the fields are those of the models.

The models take 9 MiB of memory in each process. `make schema` writes this file from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.meta.derived import HasExclusiveCpus, HasRefusals, OfContainer


@dataclass(frozen=True, slots=True)
class PoolsInForce:
    """The pools in force in the kernel."""

    reserved: CpuSet = CpuSet()
    shared: CpuSet = CpuSet()
    exclusive: CpuSet = CpuSet()

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "reserved": str(self.reserved),
            "shared": str(self.shared),
            "exclusive": str(self.exclusive),
        }


@dataclass(frozen=True, slots=True)
class KubeletContainer(OfContainer):
    """The CPUs and the NUMA nodes that the kubelet itself has given to a container."""

    pod_uid: str
    container: str
    cpus: CpuSet
    mems: MemSet = MemSet()

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

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "podUID": self.pod_uid,
            "bytes": dict(self.bytes),
        }


@dataclass(frozen=True, slots=True)
class CgroupStatus:
    """The cgroup version and driver of the node."""

    version: int
    driver: str

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "version": self.version,
            "driver": self.driver,
        }


@dataclass(frozen=True, slots=True)
class RuntimeStatus:
    """The container runtime of the node."""

    name: str
    version: str

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        return {
            "name": self.name,
            "version": self.version,
        }


@dataclass(frozen=True, slots=True)
class StartGateStatus:
    """Whether containers wait for their assignment, and which of those in force began with it."""

    active: bool
    message: str | None = None
    born_pinned: int = 0
    born_shared: tuple[str, ...] = ()

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        wire: dict[str, Any] = {
            "active": self.active,
        }
        if self.message is not None:
            wire["message"] = self.message
        wire["bornPinned"] = self.born_pinned
        wire["bornShared"] = list(self.born_shared)
        return wire


@dataclass(frozen=True, slots=True)
class HostProcessesStatus:
    """Which exclusive CPUs the processes keep off that belong to no pod."""

    kept_off: CpuSet = CpuSet()
    message: str | None = None

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        wire: dict[str, Any] = {
            "keptOff": str(self.kept_off),
        }
        if self.message is not None:
            wire["message"] = self.message
        return wire


@dataclass(frozen=True, slots=True)
class InterruptsStatus:
    """Which exclusive CPUs the interrupts of devices keep off."""

    kept_off: CpuSet = CpuSet()
    message: str | None = None

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        wire: dict[str, Any] = {
            "keptOff": str(self.kept_off),
        }
        if self.message is not None:
            wire["message"] = self.message
        return wire


@dataclass(frozen=True, slots=True)
class SystemStatus:
    """What keeps off exclusive CPUs besides containers, read from the kernel."""

    processes: HostProcessesStatus | None = None
    interrupts: InterruptsStatus | None = None

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        wire: dict[str, Any] = {}
        if self.processes is not None:
            wire["processes"] = self.processes.to_wire()
        if self.interrupts is not None:
            wire["interrupts"] = self.interrupts.to_wire()
        return wire


@dataclass(frozen=True, slots=True)
class CacheStatus:
    """Which share of caches and memory bandwidth exclusive CPUs have, read from resctrl."""

    cpus: CpuSet = CpuSet()
    schemata: str = ""
    message: str | None = None

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

    free_hugepages: tuple[Mapping[str, Any], ...] = ()
    pools: PoolsInForce | None = None
    kubelet_containers: tuple[KubeletContainer, ...] = ()
    claims: tuple[ClaimedCpus, ...] = ()
    devices: DevicesStatus | None = None
    disturbances: tuple[Disturbance, ...] = ()
    unbound_memory: tuple[UnboundMemory, ...] = ()
    drift_count: int = 0
    drift_causes: Mapping[str, int] = field(default_factory=dict)
    cgroup: CgroupStatus | None = None
    runtime: RuntimeStatus | None = None
    start_gate: StartGateStatus | None = None
    system: SystemStatus | None = None
    cache: CacheStatus | None = None
    isolation: IsolationStatus | None = None
    boot_id: str | None = None
    observed_generation: int = 0
    topology: Mapping[str, Any] | None = None
    containers: tuple[ContainerStatus, ...] = ()
    running: tuple[str, ...] = ()
    refused: int = 0
    outdated: int = 0

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        wire: dict[str, Any] = {
            "freeHugepages": list(self.free_hugepages),
        }
        if self.pools is not None:
            wire["pools"] = self.pools.to_wire()
        wire["kubeletContainers"] = [one.to_wire() for one in self.kubelet_containers]
        wire["claims"] = [one.to_wire() for one in self.claims]
        if self.devices is not None:
            wire["devices"] = self.devices.to_wire()
        wire["disturbances"] = [one.to_wire() for one in self.disturbances]
        wire["unboundMemory"] = [one.to_wire() for one in self.unbound_memory]
        wire["driftCount"] = self.drift_count
        wire["driftCauses"] = dict(self.drift_causes)
        if self.cgroup is not None:
            wire["cgroup"] = self.cgroup.to_wire()
        if self.runtime is not None:
            wire["runtime"] = self.runtime.to_wire()
        if self.start_gate is not None:
            wire["startGate"] = self.start_gate.to_wire()
        if self.system is not None:
            wire["system"] = self.system.to_wire()
        if self.cache is not None:
            wire["cache"] = self.cache.to_wire()
        if self.isolation is not None:
            wire["isolation"] = self.isolation.to_wire()
        if self.boot_id is not None:
            wire["bootID"] = self.boot_id
        wire["observedGeneration"] = self.observed_generation
        if self.topology is not None:
            wire["topology"] = self.topology
        wire["containers"] = [one.to_wire() for one in self.containers]
        wire["running"] = list(self.running)
        wire["refused"] = self.refused
        wire["outdated"] = self.outdated
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
            wire["resource"],
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
    outdated: bool | None = None
    claimed: bool | None = None

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "ContainerAssignment":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            wire["podUID"],
            wire["namespace"],
            wire["pod"],
            wire["container"],
            CpuSet.parse(wire.get("cpus", "")),
            MemSet.parse(wire.get("mems", "")),
            wire.get("exclusive", False),
            tuple(map(MemoryBlock.from_wire, wire.get("memory", ()))),
            wire.get("outdated"),
            wire.get("claimed"),
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
        if self.outdated is not None:
            wire["outdated"] = self.outdated
        if self.claimed is not None:
            wire["claimed"] = self.claimed
        return wire


@dataclass(frozen=True, slots=True)
class NodeAssignmentSpec(HasExclusiveCpus, HasRefusals):
    """The desired state of the node; written only by the operator.

    `pools` is unset until the node's topology is known, and where `mode` is None.
    """

    mode: str = "Static"
    pools: Pools | None = None
    cpu_quota: str = "Unlimited"
    isolation: str = "Cpuset"
    system: System | None = None
    cache: Cache | None = None
    start_gate: Mapping[str, Any] | None = None
    containers: tuple[ContainerAssignment, ...] = ()
    refused: tuple[Mapping[str, Any], ...] = ()
    refused_omitted: int | None = None
    unassigned: tuple[str, ...] = ()
    confined: tuple[str, ...] | None = None
    release_at: str | None = None

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "NodeAssignmentSpec":
        """The value of a JSON object without faults; unknown fields are dropped."""
        return cls(
            wire.get("mode", "Static"),
            Pools.from_wire(found) if (found := wire.get("pools")) is not None else None,
            wire.get("cpuQuota", "Unlimited"),
            wire.get("isolation", "Cpuset"),
            System.from_wire(found) if (found := wire.get("system")) is not None else None,
            Cache.from_wire(found) if (found := wire.get("cache")) is not None else None,
            wire.get("startGate"),
            tuple(map(ContainerAssignment.from_wire, wire.get("containers", ()))),
            tuple(wire.get("refused", ())),
            wire.get("refusedOmitted"),
            tuple(wire.get("unassigned", ())),
            tuple(found) if (found := wire.get("confined")) is not None else None,
            wire.get("releaseAt"),
        )

    def to_wire(self) -> dict[str, Any]:
        """The value as a JSON object, without the unset (None) fields."""
        wire: dict[str, Any] = {
            "mode": self.mode,
        }
        if self.pools is not None:
            wire["pools"] = self.pools.to_wire()
        wire["cpuQuota"] = self.cpu_quota
        wire["isolation"] = self.isolation
        if self.system is not None:
            wire["system"] = self.system.to_wire()
        if self.cache is not None:
            wire["cache"] = self.cache.to_wire()
        if self.start_gate is not None:
            wire["startGate"] = self.start_gate
        wire["containers"] = [one.to_wire() for one in self.containers]
        wire["refused"] = list(self.refused)
        if self.refused_omitted is not None:
            wire["refusedOmitted"] = self.refused_omitted
        wire["unassigned"] = list(self.unassigned)
        if self.confined is not None:
            wire["confined"] = list(self.confined)
        if self.release_at is not None:
            wire["releaseAt"] = self.release_at
        return wire
