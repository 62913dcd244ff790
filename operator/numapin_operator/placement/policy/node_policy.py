"""A CpuPolicy worked out for one machine, or the reason why it cannot work there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from numapin_api.cpupolicy import CpuPolicySpec, Options
from numapin_api.cpuset import CpuSet
from numapin_api.topology import Topology
from numapin_operator.placement.cpumanager.cpu_groups import CpuGroups, cpu_groups_of
from numapin_operator.placement.cpumanager.packed import Packing
from numapin_operator.placement.cpumanager.take import CpuTaker, Method
from numapin_operator.placement.devicemanager.given import NodeDevices
from numapin_operator.placement.errors import NotEnoughCpusError, PolicyError
from numapin_operator.placement.kubelet_quirks import NO_QUIRKS, KubeletQuirks
from numapin_operator.placement.masks import NO_CPUS, CpuMask, numa_mask
from numapin_operator.placement.memorymanager.memory_capacity import bindable_memory
from numapin_operator.placement.policy.admission import Allocatable
from numapin_operator.placement.requests import Capacity
from numapin_operator.placement.topologymanager.distances import distances_of
from numapin_operator.placement.topologymanager.merge import HintMerger

_EXCLUDING: Final = (
    ("full_pcpus_only", "distribute_cpus_across_cores"),
    ("distribute_cpus_across_numa", "distribute_cpus_across_cores"),
    ("prefer_align_cpus_by_uncore_cache", "distribute_cpus_across_cores"),
    ("prefer_align_cpus_by_uncore_cache", "distribute_cpus_across_numa"),
)


@dataclass(frozen=True, slots=True, eq=False)
class NodePolicy:
    """One policy on one machine.

    Attributes:
        topology: the machine.
        cpu_groups: which of its CPUs lie together.
        spec: the policy.
        reserved: CPUs that are never given out.
        reserved_cores: CPUs of cores that have a reserved CPU.
        isolated: CPUs that are not shared because the kernel isolates them.
        capacity: memory that can be bound; empty if the policy leaves memory alone.
        hint_merger: how NUMA nodes are chosen.
        cpu_taker: how CPUs are chosen.
        quirks: faults of the kubelet to repeat.
        free_hugepages: bytes that the kernel has free; NUMA nodes that it lacks are unknown.
        allocatable: what the Node offers to pods; None if that does not matter.
        used_memory: bytes that the kernel has on each NUMA node for pods without bound memory, by
            UID; of a pod that it lacks nothing is known.
        claims: the CPUs that a DRA driver has given to ResourceClaims, by UID.
        claimed: those of them that pods of the node use.
        gives_notice: a container that is resized keeps the CPUs that it gives back until it has
            had notice; see `resize.notice`.
        devices: the devices that the kubelet has given to pods; None if it is not asked.
    """

    topology: Topology
    cpu_groups: CpuGroups
    spec: CpuPolicySpec
    reserved: CpuMask
    reserved_cores: CpuMask
    isolated: CpuMask
    capacity: Capacity
    hint_merger: HintMerger
    cpu_taker: CpuTaker
    quirks: KubeletQuirks
    free_hugepages: Capacity = field(default_factory=dict)
    allocatable: Allocatable | None = None
    used_memory: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    claims: Mapping[str, CpuSet] = field(default_factory=dict)
    claimed: CpuMask = NO_CPUS
    gives_notice: bool = False
    devices: NodeDevices | None = None

    @property
    def all_shared(self) -> CpuMask:
        """The shared pool of a node on which nothing is placed."""
        unreserved = self.reserved if self.spec.reserved.strict else NO_CPUS
        return self.cpu_groups.cpus & ~unreserved & ~self.isolated

    @property
    def exclusive_only(self) -> CpuMask:
        """CPUs that exclusive containers alone may use."""
        return self.isolated & ~self.reserved

    @property
    def given_out(self) -> CpuMask:
        """Every CPU that is shared or given out."""
        return self.all_shared | self.exclusive_only

    @property
    def binds_memory(self) -> bool:
        """Whether containers are bound to the NUMA nodes of their memory."""
        return bool(self.capacity)


def resolve(
    topology: Topology, spec: CpuPolicySpec, quirks: KubeletQuirks = NO_QUIRKS
) -> NodePolicy:
    """Work a policy out for a machine.

    A policy that names neither reserved CPUs nor a count reserves one CPU; `with_reserved` sets the
    count of a node.

    Raises:
        PolicyError: the policy contradicts itself or cannot work on this machine.
    """
    cpu_groups = cpu_groups_of(topology)
    _check_options(spec, cpu_groups)
    taker = _cpu_taker(cpu_groups, spec.options, quirks)
    isolated = _isolated(topology, spec)
    reserved = _reserved(spec, taker, isolated, topology)
    leaves_none = spec.reserved.strict and not cpu_groups.cpus & ~reserved & ~isolated
    if leaves_none and not quirks.empties_shared_pool:
        raise PolicyError("reserved", "leaves no CPU for the shared pool; reserve fewer CPUs")
    return NodePolicy(
        topology=topology,
        cpu_groups=cpu_groups,
        spec=spec,
        reserved=reserved,
        isolated=isolated,
        reserved_cores=cpu_groups.with_siblings(reserved),
        capacity=bindable_memory(topology, spec.memory),
        hint_merger=_hint_merger(topology, spec),
        cpu_taker=taker,
        quirks=quirks,
    )


def _cpu_taker(cpu_groups: CpuGroups, options: Options, quirks: KubeletQuirks) -> CpuTaker:
    whole_cores, distributes = options.full_pcpus_only, options.distribute_cpus_across_numa
    method = Method.DISTRIBUTED if distributes else Method.PACKED
    split = cpu_groups.units_split_cores and not quirks.splits_cores
    if whole_cores and (split or not cpu_groups.uniform):
        method = Method.WHOLE_CORES
    return CpuTaker(
        cpu_groups=cpu_groups,
        packing=Packing(
            spread=options.distribute_cpus_across_cores,
            uncore=options.prefer_align_cpus_by_uncore_cache,
            one_socket=options.align_by_socket and not quirks.distributes_over_sockets,
            quirks=quirks,
        ),
        method=method,
        group_size=cpu_groups.threads if whole_cores else 1,
        whole_cores_only=whole_cores,
        align_by_socket=options.align_by_socket,
        distributes_cores=distributes and cpu_groups.uniform,
    )


def _check_options(spec: CpuPolicySpec, cpu_groups: CpuGroups) -> None:
    for one, other in _EXCLUDING:
        if getattr(spec.options, one) and getattr(spec.options, other):
            names = [Options.model_fields[name].alias for name in (one, other)]
            raise PolicyError(f"options.{names[1]}", f"excludes options.{names[0]}; set only one")
    if spec.options.align_by_socket:
        if spec.topology.policy == "SingleNUMANode":
            raise PolicyError(
                "options.alignBySocket", "conflicts with topology.policy SingleNUMANode: remove one"
            )
        if len(cpu_groups.sockets) > len(cpu_groups.numa_nodes):
            raise PolicyError(
                "options.alignBySocket",
                f"this machine has more sockets ({len(cpu_groups.sockets)}) than NUMA nodes with "
                f"CPUs ({len(cpu_groups.numa_nodes)}); drop the option here",
            )


def _isolated(topology: Topology, spec: CpuPolicySpec) -> CpuMask:
    if spec.isolated_cpus == "Ignore":
        return NO_CPUS
    isolated = topology.isolated & topology.online
    if isolated == topology.online:
        raise PolicyError(
            "isolatedCPUs",
            f"the kernel isolates every CPU of this machine ({isolated}), and none is left for the "
            "shared pool; isolate fewer CPUs (isolcpus), or set Ignore",
        )
    return CpuMask(isolated.mask)


def _reserved(
    spec: CpuPolicySpec, taker: CpuTaker, isolated: CpuMask, topology: Topology
) -> CpuMask:
    """The reserved CPUs that pods could use; none if all that are named are withheld from them."""
    online = taker.cpu_groups.cpus
    if spec.reserved.cpus is None:
        try:
            return taker.take_any(online & ~isolated, spec.reserved.count or 1)
        except NotEnoughCpusError as refused:
            raise PolicyError("reserved.count", f"{refused}; reserve fewer CPUs") from refused
    named = CpuMask(spec.reserved.cpus.mask)
    offline, withheld = topology.offline.mask, topology.withheld.mask
    if unknown := named & ~online & ~offline & ~withheld:
        raise PolicyError(
            "reserved.cpus",
            f"this machine has no online CPU {CpuSet.from_mask(unknown)};"
            f" it has {CpuSet.from_mask(online)}",
        )
    if named and not named & (online | withheld):
        raise PolicyError(
            "reserved.cpus",
            f"every reserved CPU of this machine is offline ({CpuSet.from_mask(named)}); bring one "
            f"online, or reserve some of {CpuSet.from_mask(online)}",
        )
    return named & online


def _hint_merger(topology: Topology, spec: CpuPolicySpec) -> HintMerger:
    closest = spec.topology.prefer_closest_numa_nodes
    return HintMerger(
        policy=spec.topology.policy,
        everywhere=numa_mask(numa_node.id for numa_node in topology.numa_nodes),
        distances=distances_of(topology) if closest else None,
    )
