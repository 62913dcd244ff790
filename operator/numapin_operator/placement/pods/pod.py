"""One pod's way from its requests to its CPUs, memory and devices."""

from collections.abc import Callable

from numapin_operator.placement.allocations import ContainerAllocation, PodAllocation, mems_of
from numapin_operator.placement.cpumanager.pod_cpus import PodCpus
from numapin_operator.placement.cpumanager.pool import CpuPool
from numapin_operator.placement.devicemanager.given import GivenDevices
from numapin_operator.placement.devicemanager.pod_devices import PodDevices
from numapin_operator.placement.devicemanager.pool import DevicePool
from numapin_operator.placement.errors import PlacementError
from numapin_operator.placement.masks import (
    NO_CPUS,
    CpuMask,
    NumaMask,
    numa_mask,
)
from numapin_operator.placement.memorymanager.binder import MemoryBinder
from numapin_operator.placement.memorymanager.memory_capacity import tried_first
from numapin_operator.placement.memorymanager.nearest import NearestBinder, NearestRules
from numapin_operator.placement.memorymanager.none import NoBinder
from numapin_operator.placement.memorymanager.static import StaticBinder
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.pods.hint import HintFinder
from numapin_operator.placement.pods.near import only_near, say_near
from numapin_operator.placement.pods.numa_preference import (
    SPREAD,
    NumaPreference,
    numa_preference,
)
from numapin_operator.placement.pods.pod_level import PodLevelPlacement
from numapin_operator.placement.policy.node_policy import NodePolicy
from numapin_operator.placement.policy.pod_requests import ANYWHERE, limits
from numapin_operator.placement.requests import (
    Amounts,
    ContainerKind,
    ContainerView,
    PodView,
    container_memory,
    exclusive_cpus,
    pod_cpus,
    pod_devices,
    pod_memory,
)
from numapin_operator.placement.topologymanager.merge import Choose, MergedHint


class PodPlacement:
    """One pod being placed on a node, container by container or as a whole."""

    def __init__(
        self,
        policy: NodePolicy,
        pool: CpuPool,
        tables: MemoryTables | None,
        devices: DevicePool | None,
        pod: PodView,
    ) -> None:
        self._policy, self._pod = policy, pod
        self._pool, self._tables, self._there = pool, tables, devices
        self._preference = numa_preference(policy.spec, pod)
        self._begin()

    def _begin(self) -> None:
        self._init_on: NumaMask | None = None
        policy = self._policy
        self._cpus = PodCpus(policy.cpu_taker, self._pool, policy.quirks)
        self._memory = _binder(policy, self._tables)
        self._devices: PodDevices | None = None
        if self._there is not None:
            self._devices = PodDevices(self._there, policy.hint_merger.everywhere)
        prefers = self._prefers if self._preference else None
        given = policy.devices and GivenDevices(policy.devices, self._pod)
        self._hints = HintFinder(policy, self._cpus, self._memory, given or self._devices, prefers)

    def _prefers(self, count: int, free: CpuMask, asked: Amounts) -> Choose:
        spreads = self._preference == SPREAD
        return NumaPreference(self._policy, spreads, count, free, asked, self._tables).choose

    def run(self) -> PodAllocation:
        """Place every container.

        A pod that does not fit on the NUMA nodes that it prefers is placed as if it preferred none,
        and one that does not fit near what it prefers, next to that.

        Raises:
            PlacementError: one of them cannot be placed; `undo` returns what the others got.
        """
        if self._pod.near is None:
            return self._run_preferring()
        *nearer, last = limits(self._policy.spec, self._policy.topology, self._pod)
        for numa_nodes in nearer:
            try:
                return self._run_within(numa_nodes)
            except PlacementError:
                self.undo()
                self._preference = numa_preference(self._policy.spec, self._pod)
                self._begin()
        try:
            return self._run_within(last)
        except PlacementError as refused:
            say_near(self._policy, self._pod, refused)
            raise

    def _run_within(self, numa_nodes: NumaMask) -> PodAllocation:
        if numa_nodes == ANYWHERE:
            return self._run_preferring()
        with only_near(self._policy, self._pool, self._tables, numa_nodes):
            return self._run_preferring()

    def _run_preferring(self) -> PodAllocation:
        if self._preference is None:
            return self._placed()
        try:
            return self._placed()
        except PlacementError:
            self.undo()
            self._preference = None
            self._begin()
            return self._placed()

    def _placed(self) -> PodAllocation:
        """Place every container, each on the NUMA nodes that are preferred.

        As the kubelet does, the containers after an init container are placed where it runs. If
        they do not fit there as the topology policy wants, they are placed as if it were not there,
        and the init container where they are.

        Raises:
            PlacementError: one of them cannot be placed; `undo` returns what the others got.
        """
        if not self._init_container_decides():
            return self._run()
        try:
            found = self._run()
        except PlacementError:
            self._again(None)
            return self._beside_followers(self._run())
        if not (bound := self._hints.apart):
            return found
        try:
            self._again(None)
            found = self._beside_followers(self._run())
        except PlacementError:
            bound = 0
        if self._hints.apart < bound:
            return found
        self.undo()
        self._begin()
        return self._run()

    def _init_container_decides(self) -> bool:
        """Whether an init container has CPUs, and the topology policy wants the next ones there."""
        pod, topology = self._pod, self._policy.spec.topology
        quirk = self._policy.quirks.binds_to_init_containers
        if quirk or topology.policy == "None" or topology.scope == "Pod":
            return False
        return any(
            one.kind is ContainerKind.INIT and not one.ended and exclusive_cpus(pod, one)
            for one in pod.containers
        )

    def _beside_followers(self, found: PodAllocation) -> PodAllocation:
        """Place init containers on the NUMA nodes of the neediest other one, if that does."""
        init = {one.name for one in self._pod.containers if one.kind is ContainerKind.INIT}
        others = [one.cpus for one in found.containers if one.name not in init and one.exclusive]
        neediest = max(others, key=int.bit_count, default=NO_CPUS)
        if not neediest:
            return found
        apart = self._hints.apart
        try:
            self._again(self._policy.cpu_groups.numa_nodes_of(neediest))
            beside = self._run()
        except PlacementError:
            apart = -1
        if self._hints.apart <= apart:
            return beside
        self._again(None)
        return self._run()

    def _again(self, init_on: NumaMask | None) -> None:
        """Begin again, with init containers on these NUMA nodes that bind no other one."""
        self.undo()
        self._begin()
        self._hints.frees_followers = True
        self._init_on = init_on

    def _run(self) -> PodAllocation:
        pod, topology = self._pod, self._policy.spec.topology
        if topology.policy == "None" or topology.scope == "Container":
            self._place_each(self._hint_of_container)
        elif pod.pod_level is None:
            devices = pod_devices(pod) if self._hints.heeds_devices else ()
            hint = self._hints.find(pod_cpus(pod), pod_memory(pod), devices)
            self._place_each(lambda *_: hint)
        else:
            level = PodLevelPlacement(self._policy, self._cpus, self._memory, self._devices, pod)
            return level.run(self._hints)
        return self._allocation()

    def taken(self, container: str | None) -> CpuMask:
        """The CPUs that a container has got so far, or the pod as a whole."""
        return self._cpus.claimed if container is None else self._cpus.of(container)

    def undo(self) -> None:
        """Return whatever was taken."""
        self._cpus.undo()
        self._memory.undo()
        if self._devices is not None:
            self._devices.undo()

    def _place_each(self, hint_of: Callable[[ContainerView, int, Amounts], MergedHint]) -> None:
        for container in self._pod.containers:
            if container.ended:
                continue
            try:
                count = exclusive_cpus(self._pod, container)
                asked = container_memory(self._pod, container)
                self._place(container, count, asked, hint_of(container, count, asked))
            except PlacementError as refused:
                refused.container = container.name
                raise

    def _place(
        self, container: ContainerView, count: int, asked: Amounts, hint: MergedHint
    ) -> None:
        if self._devices is not None:
            self._devices.allocate(container, hint.numa_nodes)
        if count:
            is_init = container.kind is ContainerKind.INIT
            self._cpus.allocate(container.name, count, hint.numa_nodes, is_init=is_init)
        self._memory.bind(container, asked, hint, self._cpus.of(container.name))

    def _hint_of_container(
        self, container: ContainerView, count: int, asked: Amounts
    ) -> MergedHint:
        is_init = container.kind is ContainerKind.INIT
        self._hints.within = self._init_on if is_init else None
        self._hints.container = container.name
        return self._hints.find(count, asked, container.devices)

    def _allocation(self) -> PodAllocation:
        bound = self._memory.blocks()
        containers = []
        for container in self._pod.containers:
            cpus, blocks = self._cpus.of(container.name), bound.get(container.name, ())
            devices = self._devices.of(container.name) if self._devices is not None else ()
            if cpus or blocks or devices:
                mems, exclusive = mems_of(blocks), cpus != 0
                containers.append(
                    ContainerAllocation(container.name, cpus, mems, blocks, exclusive, (), devices)
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
    first = numa_mask(tried_first(policy.topology, policy.spec.memory))
    rules = NearestRules(policy.topology, policy.cpu_groups, alone, divides, first)
    return NearestBinder(rules, tables)
