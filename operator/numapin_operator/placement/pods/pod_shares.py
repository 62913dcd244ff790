"""How the CPUs and memory of a pod with pod-level resources are shared among its containers.

Source: Kubernetes v1.36, `AllocatePod` of cpumanager and memorymanager.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from numapin_operator.placement.masks import NO_CPUS, CpuMask
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
