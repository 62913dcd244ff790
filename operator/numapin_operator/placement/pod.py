"""Placing: one pod's way from demand to binding, container by container or as a whole."""

from collections.abc import Callable

from numapin_api.cpuset import CpuSet
from numapin_api.quantity import format_bytes
from numapin_operator.placement.allocations import (
    Binding,
    Block,
    CpuPool,
    Holding,
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
from numapin_operator.placement.memorymanager.nearest import NearbyBinder
from numapin_operator.placement.memorymanager.static import StaticBinder
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.pod_level import (
    Shares,
    share_cpus,
    share_memory,
    starves_of_cpus,
    starves_of_memory,
)
from numapin_operator.placement.policy import Rules
from numapin_operator.placement.requests import (
    Amounts,
    ContainerCpus,
    Kind,
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
from numapin_operator.placement.topologymanager.merge import Affinity


class Placing:
    """One pod being placed on a node."""

    def __init__(
        self, rules: Rules, cpus: CpuPool, memory: MemoryTables | None, pod: PodView
    ) -> None:
        self._rules, self._pool, self._pod = rules, cpus, pod
        self._binder = _binder(rules, memory) if memory is not None else None
        self._cpus: dict[str, int] = {}
        self._claimed = 0
        self._reusable = 0

    def run(self) -> Holding:
        """Place every container.

        Raises:
            PlacementError: one of them cannot be placed; `undo` returns what the others got.
        """
        topology = self._rules.policy.topology
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
        self._pool.give_back(self._claimed)
        if self._binder is not None:
            self._binder.undo()

    def _place_whole(self) -> Holding:
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
        return self._whole_holding(shares, blocks, Binding("", cpus, mems_of(whole), whole))

    def _share_cpus(self, cpus: int) -> Shares:
        try:
            return share_cpus(self._pod, cpus, self._rules.take)
        except PlacementError:
            if self._rules.as_kubelet:
                # The kubelet forgets that it had given these to a pod which it then refuses.
                self._claimed = 0
            raise

    def _take_for_pod(self, count: int, affinity: Affinity) -> int:
        check_whole_cores(self._rules, self._pool, count)
        cpus = self._take(self._pool.free, count, affinity.numa_nodes)
        self._claim(cpus)
        return cpus

    def _whole_holding(
        self, shares: Shares, blocks: dict[str, tuple[Block, ...]], whole: Binding
    ) -> Holding:
        names = [container.name for container in self._pod.containers]
        others = shares.early
        bindings = tuple(
            Binding(
                name,
                shares.exclusive.get(name, others.get(name, shares.rest)),
                mems_of(blocks.get(name, ())),
                blocks.get(name, ()),
                exclusive=name in shares.exclusive,
            )
            for name in names
        )
        if not self._rules.as_kubelet:
            # CPUs that no container of the pod runs on serve nobody: everybody else may have them.
            used = cpus_of(bindings)
            self._pool.give_back(whole.cpus & ~used)
            whole = whole._replace(cpus=used)
        return Holding(self._pod.uid, self._pod.namespace, self._pod.name, bindings, whole)

    def _place_each(self, affinity_of: Callable[[ContainerCpus], Affinity]) -> None:
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

    def _holding(self) -> Holding:
        all_blocks = self._binder.blocks() if self._binder is not None else {}
        bindings = []
        for container in self._pod.containers:
            cpus = self._cpus.get(container.name, 0)
            blocks = all_blocks.get(container.name, ())
            if cpus or blocks:
                bound = Binding(container.name, cpus, mems_of(blocks), blocks, cpus != 0)
                bindings.append(bound)
        return Holding(self._pod.uid, self._pod.namespace, self._pod.name, tuple(bindings))

    def _affinity_of_container(self, container: ContainerCpus) -> Affinity:
        return self._affinity(
            exclusive_cpus(self._pod, container), container_memory(self._pod, container)
        )

    def _affinity(
        self, cpus: int, memory: Amounts, *, no_cpus: bool = False, no_memory: bool = False
    ) -> Affinity:
        merging = self._rules.merging
        if merging.policy == "None":
            return Affinity(None, preferred=False)
        cpu = NOWHERE if no_cpus else self._cpu_hints(cpus)
        bound = self._memory_hints(memory, nowhere=no_memory)
        merged = merging.merge(cpu, bound)
        if merged is None and self._rules.policy.memory.policy == "Preferred":
            merged = merging.merge(cpu, None)
        if merged is None:
            raise TopologyAffinityError(
                f"no NUMA nodes have {self._asks(cpus, memory)} as topology policy "
                f"{merging.policy} demands"
            )
        return merged

    def _cpu_hints(self, count: int) -> CpuHints | Impossible | None:
        if not count:
            return None
        return cpu_hints(
            self._rules.layout,
            self._pool.free,
            self._reusable,
            count,
            by_socket=self._rules.policy.options.align_by_socket,
        )

    def _memory_hints(self, asked: Amounts, *, nowhere: bool) -> MemoryHints | Impossible | None:
        if self._binder is None or not asked:
            return None
        return NOWHERE if nowhere else self._binder.hints(asked)

    @staticmethod
    def _asks(cpus: int, memory: Amounts) -> str:
        parts = [f"{cpus} CPUs"] if cpus else []
        return ", ".join([*parts, *(f"{format_bytes(size)} of {name}" for name, size in memory)])

    def _give_cpus(self, container: ContainerCpus, count: int, numa_nodes: int | None) -> None:
        check_whole_cores(self._rules, self._pool, count)
        cpus = self._take(self._pool.free | self._reusable, count, numa_nodes)
        self._claim(cpus)
        self._cpus[container.name] = cpus
        if container.kind is Kind.INIT:
            self._reusable |= cpus
        else:
            self._reusable &= ~cpus

    def _take(self, free: int, count: int, numa_nodes: int | None) -> int:
        """CPUs of the NUMA nodes first, then others. Source: Kubernetes, `allocateCPUs`."""
        if count > free.bit_count() and not self._rules.as_kubelet:
            raise NotEnoughCpusError(count, free.bit_count(), _listed(free))
        if numa_nodes is None:
            return self._rules.take(free, count)
        aligned = free & self._aligned(numa_nodes)
        taken = self._rules.take(aligned, min(count, aligned.bit_count()))
        rest = count - taken.bit_count()
        return taken | self._rules.take(free & ~taken, rest) if rest > 0 else taken

    def _aligned(self, numa_nodes: int) -> int:
        """The CPUs of NUMA nodes, with align-by-socket those of their sockets."""
        layout = self._rules.layout
        cpus = layout.cpus_in(numa_nodes)
        if not self._rules.policy.options.align_by_socket:
            return cpus
        widened = 0
        for mask in layout.sockets.values():
            if mask & cpus:
                widened |= mask
        return widened

    def _claim(self, cpus: int) -> None:
        if not self._pool.shared & ~cpus and not self._rules.as_kubelet:
            raise SharedPoolEmptyError(
                f"giving {CpuSet.from_mask(cpus)} away would leave no CPU for everybody else"
            )
        self._pool.claim(cpus)
        self._claimed |= cpus


def _binder(rules: Rules, memory: MemoryTables) -> MemoryBinder:
    policy = rules.policy.memory.policy
    if policy == "Static":
        return StaticBinder(memory, as_kubelet=rules.as_kubelet)
    return NearbyBinder(rules.layout, memory, alone=policy == "SingleNUMA")


def check_whole_cores(rules: Rules, pool: CpuPool, count: int) -> None:
    """Refuse what is not made of whole cores. Source: Kubernetes v1.36, `enforceSMTAlignment`.

    On hybrid processors, whose cores differ, the take itself sees to it.

    Raises:
        SmtAlignmentError: no multiple of a core's threads, or too few whole cores are free.
    """
    if not rules.whole_cores_only or not rules.layout.uniform:
        return
    threads, whole = rules.layout.threads, pool.free_whole_cores.bit_count()
    if count % threads:
        raise SmtAlignmentError(
            f"wanted {count} CPUs, no multiple of the {threads} threads of a core"
        )
    if count > whole:
        raise SmtAlignmentError(f"wanted {count} CPUs, {whole} free in whole cores")


def _listed(free: int) -> str:
    return f": {CpuSet.from_mask(free)}" if free else ""
