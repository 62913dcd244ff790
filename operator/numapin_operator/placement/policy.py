"""NodePolicy: a CpuPolicy resolved for one machine, or the reason why it cannot work there."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Final

from numapin_api.cpupolicy import CpuPolicySpec, Options
from numapin_api.cpuset import CpuSet
from numapin_api.quantity import QuantityError, whole
from numapin_api.topology import NumaNode, Topology, default_distances, page_size_bytes
from numapin_operator.placement.cpumanager.cpu_groups import CpuGroups, cpu_groups_of
from numapin_operator.placement.cpumanager.distributed import take_distributed
from numapin_operator.placement.cpumanager.packed import Packing, take_packed
from numapin_operator.placement.cpumanager.whole_cores import take_whole_cores
from numapin_operator.placement.errors import NotEnoughCpusError, PolicyError
from numapin_operator.placement.masks import mask_of
from numapin_operator.placement.requests import HUGEPAGES_PREFIX, MEMORY
from numapin_operator.placement.topologymanager.merge import HintMerger

Capacity = Mapping[str, Mapping[int, int]]
"""What can be bound: resource name to NUMA node to bytes."""

_EXCLUDING: Final = (
    ("full_pcpus_only", "distribute_cpus_across_cores"),
    ("distribute_cpus_across_numa", "distribute_cpus_across_cores"),
    ("prefer_align_cpus_by_uncore_cache", "distribute_cpus_across_cores"),
    ("prefer_align_cpus_by_uncore_cache", "distribute_cpus_across_numa"),
)


@dataclass(frozen=True, slots=True, eq=False)
class NodePolicy:
    """One policy on one machine.

    `reserved` is a mask of CPUs; `capacity` is empty unless memory is bound. `as_kubelet` asks for
    the kubelet's very answers, also where it gives a CPU out twice or empties the shared pool.
    """

    topology: Topology
    cpu_groups: CpuGroups
    spec: CpuPolicySpec
    reserved: int
    reserved_cores: int
    capacity: Capacity
    hint_merger: HintMerger
    as_kubelet: bool
    take: Callable[[int, int], int]

    @property
    def everyone(self) -> int:
        """The shared pool of a node on which nothing is placed yet."""
        strict = self.spec.reserved.strict
        return self.cpu_groups.cpus & ~self.reserved if strict else self.cpu_groups.cpus

    @property
    def whole_cores_only(self) -> bool:
        """Whether containers get whole cores or nothing."""
        return self.spec.options.full_pcpus_only


def resolve(topology: Topology, spec: CpuPolicySpec, *, as_kubelet: bool = False) -> NodePolicy:
    """Work a policy out for a machine.

    A policy that names neither reserved CPUs nor a count reserves one CPU; `with_reserved` puts the
    count of a node there.

    Raises:
        PolicyError: the policy contradicts itself or cannot work on this machine.
    """
    cpu_groups = cpu_groups_of(topology)
    _check_options(spec, cpu_groups)
    take = _taker(cpu_groups, spec.options, as_kubelet=as_kubelet)
    reserved = _reserved(spec, cpu_groups, take)
    if not as_kubelet and spec.reserved.strict and reserved == cpu_groups.cpus:
        raise PolicyError("reserved", "leaves no CPU for the shared pool; reserve fewer CPUs")
    return NodePolicy(
        topology=topology,
        cpu_groups=cpu_groups,
        spec=spec,
        reserved=reserved,
        reserved_cores=cpu_groups.with_siblings(reserved),
        capacity=_capacity(topology, spec) if spec.memory.policy != "None" else {},
        hint_merger=_hint_merger(topology, spec),
        as_kubelet=as_kubelet,
        take=take,
    )


def with_reserved(
    policy: CpuPolicySpec, capacity_millis: int, allocatable_millis: int
) -> CpuPolicySpec:
    """The policy with a count of reserved CPUs, where it names none: capacity less allocatable.

    Both figures are of the Node's status, in thousandths of a CPU; the count is rounded up and at
    least 1.
    """
    if policy.reserved.cpus is not None or policy.reserved.count is not None:
        return policy
    count = max(1, ceil((capacity_millis - allocatable_millis) / 1000))
    reserved = policy.reserved.model_copy(update={"count": count})
    return policy.model_copy(update={"reserved": reserved})


def _taker(
    cpu_groups: CpuGroups, options: Options, *, as_kubelet: bool
) -> Callable[[int, int], int]:
    packing = Packing(
        spread=options.distribute_cpus_across_cores,
        uncore=options.prefer_align_cpus_by_uncore_cache,
        as_kubelet=as_kubelet,
    )
    group = cpu_groups.threads if options.full_pcpus_only else 1
    if options.full_pcpus_only and not cpu_groups.uniform:
        return lambda free, count: take_whole_cores(cpu_groups, free, count, packing)
    if options.distribute_cpus_across_numa:
        return lambda free, count: take_distributed(cpu_groups, free, count, group, packing)
    return lambda free, count: take_packed(cpu_groups, free, count, packing)


def _check_options(spec: CpuPolicySpec, cpu_groups: CpuGroups) -> None:
    for one, other in _EXCLUDING:
        if getattr(spec.options, one) and getattr(spec.options, other):
            names = [Options.model_fields[name].alias for name in (one, other)]
            raise PolicyError(f"options.{names[1]}", f"excludes options.{names[0]}; set only one")
    if spec.options.align_by_socket:
        if spec.topology.policy == "SingleNUMANode":
            raise PolicyError(
                "options.alignBySocket", "contradicts topology.policy SingleNUMANode; drop one"
            )
        if len(cpu_groups.sockets) > len(cpu_groups.numa_nodes):
            raise PolicyError(
                "options.alignBySocket",
                f"this machine has more sockets ({len(cpu_groups.sockets)}) than NUMA nodes with "
                f"CPUs ({len(cpu_groups.numa_nodes)}); drop the option here",
            )


def _reserved(spec: CpuPolicySpec, cpu_groups: CpuGroups, take: Callable[[int, int], int]) -> int:
    if spec.reserved.cpus is not None:
        unknown = CpuSet.from_mask(spec.reserved.cpus.mask & ~cpu_groups.cpus)
        if unknown:
            online = CpuSet.from_mask(cpu_groups.cpus)
            raise PolicyError(
                "reserved.cpus", f"this machine has no online CPU {unknown}; it has {online}"
            )
        return spec.reserved.cpus.mask
    count = spec.reserved.count or 1
    try:
        return take(cpu_groups.cpus, count)
    except NotEnoughCpusError as refused:
        raise PolicyError("reserved.count", f"{refused}; reserve fewer CPUs") from refused


def _capacity(topology: Topology, spec: CpuPolicySpec) -> Capacity:
    capacity: dict[str, dict[int, int]] = {MEMORY: {}}
    for numa_node in topology.numa_nodes:
        for resource, size in _memory_of(numa_node):
            capacity.setdefault(resource, {})[numa_node.id] = size
    for index, kept in enumerate(spec.memory.reserved):
        place = f"memory.reserved[{index}]"
        if kept.numa_node not in capacity[MEMORY]:
            numa_nodes = ", ".join(map(str, capacity[MEMORY]))
            raise PolicyError(
                f"{place}.numaNode",
                f"this machine has no NUMA node {kept.numa_node}, only {numa_nodes}",
            )
        wanted = {f"{HUGEPAGES_PREFIX}{size}": q for size, q in kept.hugepages.items()}
        for resource, quantity in ({MEMORY: kept.memory} | wanted).items():
            if quantity is not None:
                at = capacity.setdefault(resource, {})
                _keep(at, kept.numa_node, quantity, f"{place}: {resource}")
    return capacity


def _memory_of(numa_node: NumaNode) -> Iterator[tuple[str, int]]:
    if (
        numa_node.on_device
    ):  # listed, so that hints still know the node, but nothing is to be had there
        yield MEMORY, 0
        return
    ordinary = numa_node.memory_bytes
    for size, pages in numa_node.hugepages.items():
        total = pages * page_size_bytes(size)
        ordinary -= total
        yield f"{HUGEPAGES_PREFIX}{size}", total
    yield MEMORY, max(0, ordinary)


def _keep(at: dict[int, int], numa_node: int, quantity: str, place: str) -> None:
    try:
        size = whole(quantity)
    except QuantityError as refused:
        raise PolicyError(place, str(refused)) from refused
    present = at.get(numa_node, 0)
    if size > present:
        raise PolicyError(
            place,
            f"{size} bytes reserved of the {present} that NUMA node {numa_node} has; lower it",
        )
    at[numa_node] = present - size


def _hint_merger(topology: Topology, spec: CpuPolicySpec) -> HintMerger:
    closest = spec.topology.prefer_closest_numa_nodes
    return HintMerger(
        policy=spec.topology.policy,
        everywhere=mask_of(numa_node.id for numa_node in topology.numa_nodes),
        distances=_distances(topology) if closest else None,
    )


def _distances(topology: Topology) -> dict[int, dict[int, int]]:
    ids = [numa_node.id for numa_node in topology.numa_nodes]
    assumed = default_distances(len(ids))
    return {
        numa_node.id: dict(zip(ids, numa_node.distances or assumed[row], strict=True))
        for row, numa_node in enumerate(topology.numa_nodes)
    }
