"""PodPlacement: one pod's way from demand to container, container by container or as a whole."""

from collections.abc import Callable

from numapin_api.cpuset import CpuSet
from numapin_api.quantity import format_bytes
from numapin_operator.placement.allocations import (
    Block,
    ContainerAllocation,
    CpuPool,
    PodAllocation,
    cpus_of,
    mems_of,
)
from numapin_operator.placement.errors import (
    EmptyPodSharedPoolError,
    NotEnoughCpusError,
    PlacementError,
    SharedPoolEmptyError,
    SmtAlignmentError,
    TopologyAffinityError,
)
from numapin_operator.placement.memorymanager.binder import MemoryBinder, divide
from numapin_operator.placement.memorymanager.nearest import NearestBinder
from numapin_operator.placement.memorymanager.static import StaticBinder
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.pod_level import (
    Shares,
    share_cpus,
    share_memory,
    starves_of_cpus,
    starves_of_memory,
)
from numapin_operator.placement.policy import NodePolicy
from numapin_operator.placement.requests import (
    Amounts,
    ContainerKind,
    ContainerView,
    PodView,
    container_memory,
    exclusive_cpus,
    pod_cpus,
    pod_memory,
)
from numapin_operator.placement.topologymanager.hints import (
    NOWHERE,
    CpuHints,
    Impossible,
    MemoryHints,
    cpu_hints,
)
from numapin_operator.placement.topologymanager.merge import MergedHint


class PodPlacement:
    """One pod being placed on a node."""

    def __init__(
        self, policy: NodePolicy, cpus: CpuPool, memory: MemoryTables | None, pod: PodView
    ) -> None:
        self._policy, self._pool, self._pod = policy, cpus, pod
        self._binder = _binder(policy, memory) if memory is not None else None
        self._cpus: dict[str, int] = {}
        self._claimed = 0
        self._reusable = 0

    def run(self) -> PodAllocation:
        """Place every container.

        Raises:
            PlacementError: one of them cannot be placed; `undo` returns what the others got.
        """
        topology = self._policy.spec.topology
        if topology.policy == "None" or topology.scope == "Container":
            self._place_each(self._affinity_of_container)
        elif self._pod.pod_level is None:
            affinity = self._affinity(pod_cpus(self._pod), pod_memory(self._pod))
            self._place_each(lambda _: affinity)
        else:
            return self._place_whole()
        return self._holding()

    def undo(self) -> None:
        """Give back whatever was taken."""
        self._pool.release(self._claimed)
        if self._binder is not None:
            self._binder.undo()

    def _place_whole(self) -> PodAllocation:
        pod, count = self._pod, pod_cpus(self._pod)
        no_cpus, no_memory = starves_of_cpus(pod) if count else None, starves_of_memory(pod)
        affinity = self._affinity(
            count, pod_memory(pod), no_cpus=bool(no_cpus), no_memory=bool(no_memory)
        )
        if no_cpus:
            raise EmptyPodSharedPoolError(no_cpus)
        cpus = self._take_for_pod(count, affinity) if count else 0
        shares = self._share_cpus(cpus) if count else Shares({}, {}, 0)
        blocks: dict[str, tuple[Block, ...]] = {}
        whole: tuple[Block, ...] = ()
        if self._binder is not None:
            if no_memory:
                raise EmptyPodSharedPoolError(no_memory)
            whole = self._binder.bind_pod(pod_memory(pod), affinity, cpus)
            blocks = divide(share_memory(pod), whole)
        return self._whole_holding(
            shares, blocks, ContainerAllocation("", cpus, mems_of(whole), whole)
        )

    def _share_cpus(self, cpus: int) -> Shares:
        try:
            return share_cpus(self._pod, cpus, self._policy.take)
        except PlacementError:
            if self._policy.as_kubelet:
                # The kubelet forgets that it had given these to a pod which it then refuses.
                self._claimed = 0
            raise

    def _take_for_pod(self, count: int, affinity: MergedHint) -> int:
        check_whole_cores(self._policy, self._pool, count)
        cpus = self._take(self._pool.free, count, affinity.numa_nodes)
        self._claim(cpus)
        return cpus

    def _whole_holding(
        self, shares: Shares, blocks: dict[str, tuple[Block, ...]], whole: ContainerAllocation
    ) -> PodAllocation:
        names = [container.name for container in self._pod.containers]
        others = shares.early
        containers = tuple(
            ContainerAllocation(
                name,
                shares.exclusive.get(name, others.get(name, shares.rest)),
                mems_of(blocks.get(name, ())),
                blocks.get(name, ()),
                exclusive=name in shares.exclusive,
            )
            for name in names
        )
        if not self._policy.as_kubelet:
            # CPUs that no container of the pod runs on serve nobody: everybody else may have them.
            used = cpus_of(containers)
            self._pool.release(whole.cpus & ~used)
            whole = whole._replace(cpus=used)
        return PodAllocation(self._pod.uid, self._pod.namespace, self._pod.name, containers, whole)

    def _place_each(self, affinity_of: Callable[[ContainerView], MergedHint]) -> None:
        for container in self._pod.containers:
            if container.ended:
                continue
            try:
                affinity = affinity_of(container)
                count = exclusive_cpus(self._pod, container)
                if count:
                    self._give_cpus(container, count, affinity.numa_nodes)
                if self._binder is not None:
                    asked = container_memory(self._pod, container)
                    self._binder.bind(container, asked, affinity, self._cpus.get(container.name, 0))
            except PlacementError as refused:
                refused.container = container.name
                raise

    def _holding(self) -> PodAllocation:
        all_blocks = self._binder.blocks() if self._binder is not None else {}
        containers = []
        for container in self._pod.containers:
            cpus = self._cpus.get(container.name, 0)
            blocks = all_blocks.get(container.name, ())
            if cpus or blocks:
                bound = ContainerAllocation(
                    container.name, cpus, mems_of(blocks), blocks, cpus != 0
                )
                containers.append(bound)
        return PodAllocation(self._pod.uid, self._pod.namespace, self._pod.name, tuple(containers))

    def _affinity_of_container(self, container: ContainerView) -> MergedHint:
        return self._affinity(
            exclusive_cpus(self._pod, container), container_memory(self._pod, container)
        )

    def _affinity(
        self, cpus: int, memory: Amounts, *, no_cpus: bool = False, no_memory: bool = False
    ) -> MergedHint:
        hint_merger = self._policy.hint_merger
        if hint_merger.policy == "None":
            return MergedHint(None, preferred=False)
        cpu = NOWHERE if no_cpus else self._cpu_hints(cpus)
        bound = self._memory_hints(memory, nowhere=no_memory)
        merged = hint_merger.merge(cpu, bound)
        if merged is None and self._policy.spec.memory.policy == "Preferred":
            merged = hint_merger.merge(cpu, None)
        if merged is None:
            raise TopologyAffinityError(
                f"no NUMA nodes have {self._asks(cpus, memory)} as topology policy "
                f"{hint_merger.policy} demands"
            )
        return merged

    def _cpu_hints(self, count: int) -> CpuHints | Impossible | None:
        if not count:
            return None
        return cpu_hints(
            self._policy.cpu_groups,
            self._pool.free,
            self._reusable,
            count,
            by_socket=self._policy.spec.options.align_by_socket,
        )

    def _memory_hints(self, asked: Amounts, *, nowhere: bool) -> MemoryHints | Impossible | None:
        if self._binder is None or not asked:
            return None
        return NOWHERE if nowhere else self._binder.hints(asked)

    @staticmethod
    def _asks(cpus: int, memory: Amounts) -> str:
        parts = [f"{cpus} CPUs"] if cpus else []
        return ", ".join([*parts, *(f"{format_bytes(size)} of {name}" for name, size in memory)])

    def _give_cpus(self, container: ContainerView, count: int, numa_nodes: int | None) -> None:
        check_whole_cores(self._policy, self._pool, count)
        cpus = self._take(self._pool.free | self._reusable, count, numa_nodes)
        self._claim(cpus)
        self._cpus[container.name] = cpus
        if container.kind is ContainerKind.INIT:
            self._reusable |= cpus
        else:
            self._reusable &= ~cpus

    def _take(self, free: int, count: int, numa_nodes: int | None) -> int:
        """CPUs of the NUMA nodes first, then others. Source: Kubernetes, `allocateCPUs`."""
        if count > free.bit_count() and not self._policy.as_kubelet:
            raise NotEnoughCpusError(count, free.bit_count(), _listed(free))
        if numa_nodes is None:
            return self._policy.take(free, count)
        aligned = free & self._aligned(numa_nodes)
        taken = self._policy.take(aligned, min(count, aligned.bit_count()))
        rest = count - taken.bit_count()
        return taken | self._policy.take(free & ~taken, rest) if rest > 0 else taken

    def _aligned(self, numa_nodes: int) -> int:
        """The CPUs of NUMA nodes, with align-by-socket those of their sockets."""
        cpu_groups = self._policy.cpu_groups
        cpus = cpu_groups.cpus_in(numa_nodes)
        if not self._policy.spec.options.align_by_socket:
            return cpus
        widened = 0
        for mask in cpu_groups.sockets.values():
            if mask & cpus:
                widened |= mask
        return widened

    def _claim(self, cpus: int) -> None:
        if not self._pool.shared & ~cpus and not self._policy.as_kubelet:
            raise SharedPoolEmptyError(
                f"giving {CpuSet.from_mask(cpus)} away would leave no CPU for everybody else"
            )
        self._pool.claim(cpus)
        self._claimed |= cpus


def _binder(policy: NodePolicy, memory: MemoryTables) -> MemoryBinder:
    name = policy.spec.memory.policy
    if name == "Static":
        return StaticBinder(memory, as_kubelet=policy.as_kubelet)
    return NearestBinder(policy.cpu_groups, memory, alone=name == "SingleNUMA")


def check_whole_cores(policy: NodePolicy, pool: CpuPool, count: int) -> None:
    """Refuse what is not made of whole cores. Source: Kubernetes v1.36, `enforceSMTAlignment`.

    On hybrid processors, whose cores differ, the take itself sees to it.

    Raises:
        SmtAlignmentError: no multiple of a core's threads, or too few whole cores are free.
    """
    if not policy.whole_cores_only or not policy.cpu_groups.uniform:
        return
    threads, whole = policy.cpu_groups.threads, pool.free_whole_cores.bit_count()
    if count % threads:
        raise SmtAlignmentError(
            f"wanted {count} CPUs, no multiple of the {threads} threads of a core"
        )
    if count > whole:
        raise SmtAlignmentError(f"wanted {count} CPUs, {whole} free in whole cores")


def _listed(free: int) -> str:
    return f": {CpuSet.from_mask(free)}" if free else ""
