"""Pod-level resources: given to the pod as a whole and shared out among its containers.

Source: Kubernetes v1.36, `AllocatePod` of cpumanager and memorymanager.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from numapin_operator.placement.allocations import (
    Block,
    ContainerAllocation,
    PodAllocation,
    cpus_of,
    mems_of,
)
from numapin_operator.placement.cpumanager.pod_cpus import PodCpus
from numapin_operator.placement.errors import EmptyPodSharedPoolError, PlacementError
from numapin_operator.placement.masks import NO_CPUS, CpuMask
from numapin_operator.placement.memorymanager.binder import MemoryBinder, divide
from numapin_operator.placement.pod_hint import HintFinder
from numapin_operator.placement.policy import NodePolicy
from numapin_operator.placement.requests import (
    Amounts,
    ContainerKind,
    ContainerView,
    PodView,
    amounts,
    container_memory,
    exclusive_cpus,
    pod_cpus,
    pod_memory,
)

Take = Callable[[CpuMask, int], CpuMask]
"""Chooses so many of the CPUs in a mask."""


@dataclass(frozen=True, slots=True)
class CpuShares:
    """A pod's CPUs by container.

    A container has its `exclusive` CPUs; an init container without any has those of `early`; every
    other container has `rest`, the pod's own shared pool.
    """

    exclusive: Mapping[str, CpuMask]
    early: Mapping[str, CpuMask]
    rest: CpuMask


class PodLevelPlacement:
    """One pod with pod-level resources being placed as a whole."""

    def __init__(
        self, policy: NodePolicy, cpus: PodCpus, memory: MemoryBinder, pod: PodView
    ) -> None:
        self._policy, self._cpus, self._memory, self._pod = policy, cpus, memory, pod

    def run(self, hints: HintFinder) -> PodAllocation:
        """Give the pod CPUs and memory, and share them out.

        Raises:
            PlacementError: it cannot be placed.
        """
        pod, count, asked = self._pod, pod_cpus(self._pod), pod_memory(self._pod)
        no_cpus = starves_of_cpus(pod) if count else None
        no_memory = starves_of_memory(pod) if self._policy.binds_memory else None
        hint = hints.find(count, asked, no_cpus=bool(no_cpus), no_memory=bool(no_memory))
        if no_cpus:
            raise EmptyPodSharedPoolError(no_cpus)
        cpus = self._cpus.allocate_pod(count, hint.numa_nodes) if count else NO_CPUS
        shares = self._share_cpus(cpus) if count else CpuShares({}, {}, NO_CPUS)
        if no_memory:
            raise EmptyPodSharedPoolError(no_memory)
        bound = self._memory.bind_pod(asked, hint, cpus)
        blocks = divide(share_memory(pod), bound) if self._policy.binds_memory else {}
        return self._allocation(
            shares, blocks, ContainerAllocation("", cpus, mems_of(bound), bound)
        )

    def _share_cpus(self, cpus: CpuMask) -> CpuShares:
        try:
            return share_cpus(self._pod, cpus, self._policy.cpu_taker.take)
        except PlacementError:
            if self._policy.quirks.leaks_cpus_of_refused_pods:
                self._cpus.forget()
            raise

    def _allocation(
        self, shares: CpuShares, blocks: dict[str, tuple[Block, ...]], whole: ContainerAllocation
    ) -> PodAllocation:
        containers = tuple(
            ContainerAllocation(
                name,
                shares.exclusive.get(name, shares.early.get(name, shares.rest)),
                mems_of(blocks.get(name, ())),
                blocks.get(name, ()),
                exclusive=name in shares.exclusive,
            )
            for name in (container.name for container in self._pod.containers)
        )
        if not self._policy.quirks.keeps_unused_pod_cpus:
            used = cpus_of(containers)
            self._cpus.release(whole.cpus & ~used)
            whole = whole._replace(cpus=used)
        return PodAllocation(self._pod.uid, self._pod.namespace, self._pod.name, containers, whole)


def starves_of_cpus(pod: PodView) -> str | None:
    """Why a container without exclusive CPUs would have no CPU left; None if none would."""
    budget = pod_cpus(pod)
    return _starves(
        pod,
        shares=lambda container: not exclusive_cpus(pod, container),
        asks=lambda container: ((("cpu", exclusive_cpus(pod, container)),)),
        budget={"cpu": budget},
    )


def starves_of_memory(pod: PodView) -> str | None:
    """Why a container without memory of its own would have none left; None if none would."""
    return _starves(
        pod,
        shares=lambda container: not container_memory(pod, container),
        asks=lambda container: container_memory(pod, container),
        budget=dict(pod_memory(pod)),
    )


def _starves(
    pod: PodView,
    shares: Callable[[ContainerView], bool],
    asks: Callable[[ContainerView], Amounts],
    budget: Mapping[str, int],
) -> str | None:
    used = dict.fromkeys(budget, 0)
    sharing: str | None = None
    for container in pod.containers:
        if container.kind is ContainerKind.INIT:
            if shares(container) and (gone := _used_up(used, budget)):
                return f"sidecars use up all {gone}; none is left for {container.name}"
            continue
        if shares(container):
            sharing = sharing or container.name
        for resource, size in asks(container):
            if resource in used:
                used[resource] += size
    if sharing and (gone := _used_up(used, budget)):
        return f"exclusive containers use up all {gone} of the pod; none is left for {sharing}"
    return None


def _used_up(used: Mapping[str, int], budget: Mapping[str, int]) -> str | None:
    return next((name for name in sorted(budget) if used[name] >= budget[name]), None)


def share_cpus(pod: PodView, cpus: CpuMask, take: Take) -> CpuShares:
    """Divide a pod's CPUs among its containers."""
    exclusive: dict[str, CpuMask] = {}
    early: dict[str, CpuMask] = {}
    sidecars = NO_CPUS
    for container in _of_kind(pod, ContainerKind.INIT, ContainerKind.SIDECAR):
        count = exclusive_cpus(pod, container)
        if count:
            exclusive[container.name] = mine = take(cpus & ~sidecars, count)
            if container.kind is ContainerKind.SIDECAR:
                sidecars |= mine
        elif container.kind is ContainerKind.INIT:
            early[container.name] = cpus & ~sidecars
    rest = cpus & ~sidecars
    for container in _of_kind(pod, ContainerKind.APP):
        if count := exclusive_cpus(pod, container):
            exclusive[container.name] = mine = take(rest, count)
            rest &= ~mine
    return CpuShares(exclusive, early, rest)


def share_memory(pod: PodView) -> Mapping[str, Amounts]:
    """How much of the pod's memory each container can rely on, by name."""
    budget = dict(pod_memory(pod))
    shared: dict[str, Amounts] = {}
    sidecars: dict[str, int] = {}
    for container in _of_kind(pod, ContainerKind.INIT, ContainerKind.SIDECAR):
        asked = container_memory(pod, container)
        if asked:
            shared[container.name] = _some(asked)
        elif container.kind is ContainerKind.INIT:
            shared[container.name] = _less(budget, sidecars)
        if container.kind is ContainerKind.SIDECAR:
            _add(sidecars, asked)
    used = dict(sidecars)
    for container in _of_kind(pod, ContainerKind.APP):
        if asked := container_memory(pod, container):
            shared[container.name] = _some(asked)
            _add(used, asked)
    rest = _less(budget, used)
    return {c.name: shared.get(c.name, rest) for c in pod.containers}


def _of_kind(pod: PodView, *kinds: ContainerKind) -> Iterable[ContainerView]:
    return (container for container in pod.containers if container.kind in kinds)


def _add(total: dict[str, int], asked: Amounts) -> None:
    for name, size in asked:
        total[name] = total.get(name, 0) + size


def _less(budget: Mapping[str, int], used: Mapping[str, int]) -> Amounts:
    return _some((name, size - used.get(name, 0)) for name, size in budget.items())


def _some(asked: Iterable[tuple[str, int]]) -> Amounts:
    return amounts((name, size) for name, size in asked if size > 0)
