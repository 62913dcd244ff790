"""One pod's way from its requests to its CPUs and memory."""

from collections.abc import Callable

from numapin_operator.placement.allocations import ContainerAllocation, PodAllocation, mems_of
from numapin_operator.placement.cpumanager.pod_cpus import PodCpus
from numapin_operator.placement.cpumanager.pool import CpuPool
from numapin_operator.placement.errors import PlacementError
from numapin_operator.placement.masks import CpuMask
from numapin_operator.placement.memorymanager.binder import MemoryBinder
from numapin_operator.placement.memorymanager.nearest import NearestBinder, NearestRules
from numapin_operator.placement.memorymanager.none import NoBinder
from numapin_operator.placement.memorymanager.static import StaticBinder
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.pods.hint import HintFinder
from numapin_operator.placement.pods.pod_level import PodLevelPlacement
from numapin_operator.placement.policy import NodePolicy
from numapin_operator.placement.requests import (
    ContainerKind,
    ContainerView,
    PodView,
    container_memory,
    exclusive_cpus,
    pod_cpus,
    pod_memory,
)
from numapin_operator.placement.topologymanager.merge import MergedHint


class PodPlacement:
    """One pod being placed on a node, container by container or as a whole."""

    def __init__(
        self, policy: NodePolicy, pool: CpuPool, tables: MemoryTables | None, pod: PodView
    ) -> None:
        self._policy, self._pod = policy, pod
        self._cpus = PodCpus(policy.cpu_taker, pool, policy.quirks)
        self._memory = _binder(policy, tables)
        self._hints = HintFinder(policy, self._cpus, self._memory)

    def run(self) -> PodAllocation:
        """Place every container.

        Raises:
            PlacementError: one of them cannot be placed; `undo` returns what the others got.
        """
        pod, topology = self._pod, self._policy.spec.topology
        if topology.policy == "None" or topology.scope == "Container":
            self._place_each(self._hint_of_container)
        elif pod.pod_level is None:
            hint = self._hints.find(pod_cpus(pod), pod_memory(pod))
            self._place_each(lambda _: hint)
        else:
            return PodLevelPlacement(self._policy, self._cpus, self._memory, pod).run(self._hints)
        return self._allocation()

    def taken(self, container: str | None) -> CpuMask:
        """The CPUs that a container has got so far, or the pod as a whole."""
        return self._cpus.claimed if container is None else self._cpus.of(container)

    def undo(self) -> None:
        """Return whatever was taken."""
        self._cpus.undo()
        self._memory.undo()

    def _place_each(self, hint_of: Callable[[ContainerView], MergedHint]) -> None:
        for container in self._pod.containers:
            if container.ended:
                continue
            try:
                self._place(container, hint_of(container))
            except PlacementError as refused:
                refused.container = container.name
                raise

    def _place(self, container: ContainerView, hint: MergedHint) -> None:
        if count := exclusive_cpus(self._pod, container):
            is_init = container.kind is ContainerKind.INIT
            self._cpus.allocate(container.name, count, hint.numa_nodes, is_init=is_init)
        asked = container_memory(self._pod, container)
        self._memory.bind(container, asked, hint, self._cpus.of(container.name))

    def _hint_of_container(self, container: ContainerView) -> MergedHint:
        pod = self._pod
        return self._hints.find(exclusive_cpus(pod, container), container_memory(pod, container))

    def _allocation(self) -> PodAllocation:
        bound = self._memory.blocks()
        containers = []
        for container in self._pod.containers:
            cpus, blocks = self._cpus.of(container.name), bound.get(container.name, ())
            if cpus or blocks:
                mems, exclusive = mems_of(blocks), cpus != 0
                containers.append(
                    ContainerAllocation(container.name, cpus, mems, blocks, exclusive)
                )
        return PodAllocation(self._pod.uid, self._pod.namespace, self._pod.name, tuple(containers))


def _binder(policy: NodePolicy, tables: MemoryTables | None) -> MemoryBinder:
    name = policy.spec.memory.policy
    if tables is None:
        return NoBinder()
    if name == "Static":
        return StaticBinder(tables, policy.quirks)
    alone = name == "SingleNUMA"
    divides = policy.spec.options.distribute_cpus_across_numa and not alone
    rules = NearestRules(policy.topology, policy.cpu_groups, alone, divides)
    return NearestBinder(rules, tables)
