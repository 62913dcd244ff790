"""A NodeAssignment's status as plain values; the fields are those of the models of that name.

The models take 9 MiB of memory on every node. Does no I/O.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.memory.unbound import UnboundMemory
from numapin_enforcer.node.cdi_spec import ClaimedCpus
from numapin_enforcer.node.kubelet_state import KubeletContainer

Wire = dict[str, Any]

_LONGEST_RUNTIME_TEXT: Final = 128
"""Longest name or version of a runtime, in characters."""


@dataclass(frozen=True, slots=True)
class PoolsInForce:
    """The pools in force in the kernel."""

    reserved: CpuSet
    shared: CpuSet
    exclusive: CpuSet

    def to_wire(self) -> Wire:
        """The pools as values for JSON."""
        return {
            "reserved": str(self.reserved),
            "shared": str(self.shared),
            "exclusive": str(self.exclusive),
        }


@dataclass(frozen=True, slots=True)
class ContainerStatus:
    """The state of one container of the spec, read from the kernel."""

    pod_uid: str
    container: str
    cpus: CpuSet
    mems: MemSet = MemSet()
    exclusive: bool = False

    def to_wire(self) -> Wire:
        """The container as values for JSON."""
        return {
            "podUID": self.pod_uid,
            "container": self.container,
            "cpus": str(self.cpus),
            "mems": str(self.mems),
            "exclusive": self.exclusive,
        }


@dataclass(frozen=True, slots=True)
class CgroupStatus:
    """The cgroup version, 1 or 2, and the kubelet's cgroup driver, cgroupfs or systemd."""

    version: int
    driver: str


@dataclass(frozen=True, slots=True)
class RuntimeStatus:
    """The container runtime of the node."""

    name: str
    version: str

    @classmethod
    def cut(cls, name: str, version: str) -> Self:
        """The runtime's own texts, cut to what the status may hold."""
        return cls(name[:_LONGEST_RUNTIME_TEXT], version[:_LONGEST_RUNTIME_TEXT])


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """A `NodeAssignmentStatus` without conditions and time; the hardware is values for JSON."""

    observed_generation: int = 0
    topology: Wire | None = None
    free_hugepages: Sequence[Wire] = ()
    pools: PoolsInForce | None = None
    containers: tuple[ContainerStatus, ...] = ()
    kubelet_containers: tuple[KubeletContainer, ...] = ()
    claims: tuple[ClaimedCpus, ...] = ()
    unbound_memory: tuple[UnboundMemory, ...] = ()
    running: tuple[str, ...] = ()
    refused: int = 0
    outdated: int = 0
    drift_count: int = 0
    drift_causes: Mapping[str, int] = field(default_factory=dict)
    cgroup: CgroupStatus | None = None
    runtime: RuntimeStatus | None = None
    boot_id: str | None = None

    def to_wire(self) -> Wire:
        """The status as values for JSON, without the unset fields."""
        cgroup, runtime = self.cgroup, self.runtime
        wire = {
            "observedGeneration": self.observed_generation,
            "topology": self.topology,
            "freeHugepages": list(self.free_hugepages),
            "pools": self.pools.to_wire() if self.pools else None,
            "containers": [one.to_wire() for one in self.containers],
            "kubeletContainers": [one.to_wire() for one in self.kubelet_containers],
            "claims": [one.to_wire() for one in self.claims],
            "unboundMemory": [one.to_wire() for one in self.unbound_memory],
            "running": list(self.running),
            "refused": self.refused,
            "outdated": self.outdated,
            "driftCount": self.drift_count,
            "driftCauses": dict(self.drift_causes),
            "cgroup": {"version": cgroup.version, "driver": cgroup.driver} if cgroup else None,
            "runtime": {"name": runtime.name, "version": runtime.version} if runtime else None,
            "bootID": self.boot_id,
        }
        return {name: value for name, value in wire.items() if value is not None}
