"""What a pod that has been placed asks for now, beside what it has."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from numapin_operator.placement.allocations import Block, ContainerAllocation, PodAllocation
from numapin_operator.placement.masks import NO_CPUS, CpuMask
from numapin_operator.placement.policy import NodePolicy
from numapin_operator.placement.requests import (
    MEMORY,
    Amounts,
    ContainerKind,
    ContainerView,
    PodView,
    exclusive_cpus,
    pod_cpus,
)
from numapin_operator.placement.resize.age import Grants


class Unit(NamedTuple):
    """Containers that have the same CPUs: one exclusive one, or those that share the pod's rest.

    `cpus` is what they have, `grants` the same by age, `wanted` how many they should have; 0 if
    they should have none of their own.
    """

    names: tuple[str, ...]
    cpus: CpuMask
    grants: Grants
    wanted: int
    exclusive: bool = True


def is_resizable(pod: PodView, allocation: PodAllocation) -> bool:
    """Whether a pod that has been placed may be resized now.

    An ordinary init container leaves its CPUs to those after it, so the pod waits until it ended.
    """
    if pod.terminal or pod.deleting or pod.problem or pod.claims_unknown:
        return False
    listed = {one.name for one in allocation.containers}
    first = (one for one in pod.containers if one.kind is ContainerKind.INIT and not one.ended)
    return not any(one.name in listed for one in first)


def may_differ(pod: PodView, allocation: PodAllocation) -> bool:
    """Whether a pod may have something else than it requests; quick, since hardly any has."""
    if pod.pod_level is not None:
        return True
    has = {one.name: one for one in allocation.containers}
    return any(
        _differs(one, has.get(one.name))
        for one in pod.containers
        if one.granted and not (one.ended or one.cpu_claims)
    )


def _differs(container: ContainerView, has: ContainerAllocation | None) -> bool:
    if has is None:
        return container.whole_cpus > 0
    if has.cpus.bit_count() != container.whole_cpus:
        return True
    bound = sum(block.size_bytes for block in has.memory if block.resource == MEMORY)
    return bool(has.memory) and (MEMORY, bound) not in container.memory


def is_whole(policy: NodePolicy, pod: PodView, allocation: PodAllocation) -> bool:
    """Whether a pod has CPUs as a whole, which its containers divide among themselves."""
    if pod.pod_level is None or pod.has_cpu_claims:
        return False
    if any(one.cpus and not one.exclusive for one in allocation.containers):
        return True
    topology = policy.spec.topology
    listed = {one.name for one in allocation.containers}
    together = topology.policy != "None" and topology.scope == "Pod"
    return together and listed >= {one.name for one in pod.containers}


def units_of(policy: NodePolicy, pod: PodView, allocation: PodAllocation) -> tuple[Unit, ...]:
    """What the containers of a pod have and want; those of which nothing is known are left out."""
    has = {one.name: one for one in allocation.containers}
    if not is_whole(policy, pod, allocation):
        return tuple(
            Unit((one.name,), mine.cpus, mine.grants, wanted)
            for one in pod.containers
            if one.granted and not (one.ended or one.cpu_claims)
            for mine in (has.get(one.name, ContainerAllocation(one.name)),)
            for wanted in (exclusive_cpus(pod, one),)
            if wanted or mine.cpus
        )
    lasting = [one for one in pod.containers if one.kind is not ContainerKind.INIT]
    level = pod.pod_level
    if level is None or not level.granted or not all(one.granted for one in lasting):
        return ()
    return _units_of_whole(pod, lasting, has)


def _units_of_whole(
    pod: PodView, lasting: list[ContainerView], has: Mapping[str, ContainerAllocation]
) -> tuple[Unit, ...]:
    total = pod_cpus(pod)
    own, sharing, units = 0, list[ContainerAllocation](), list[Unit]()
    for one in lasting:
        mine = has[one.name]
        wanted = exclusive_cpus(pod, one) if total else 0
        own += wanted
        cpus, grants = (mine.cpus, mine.grants) if mine.exclusive else (NO_CPUS, ())
        if wanted or cpus:
            units.append(Unit((one.name,), cpus, grants, wanted))
        if not wanted:
            sharing.append(mine)
    shared = next((one for one in sharing if one.cpus and not one.exclusive), None)
    if not sharing:
        return tuple(units)
    cpus, grants = (shared.cpus, shared.grants) if shared else (NO_CPUS, ())
    rest = max(1, total - own) if total else 0
    names = tuple(one.name for one in sharing)
    return (*units, Unit(names, cpus, grants, rest, exclusive=False))


def as_placed(pod: PodView, allocation: PodAllocation) -> PodView:
    """A pod whose resize waits, as if it still requested what it has."""
    has = {one.name: one for one in allocation.containers}
    containers = tuple(_as_placed(one, has.get(one.name)) for one in pod.containers)
    level = pod.pod_level
    if level is not None and any(one.cpus and not one.exclusive for one in has.values()):
        memory = _bound(level.memory, allocation.memory)
        level = replace(level, cpu_millis=1000 * allocation.cpus.bit_count(), memory=memory)
    return replace(pod, containers=containers, pod_level=level)


def _as_placed(container: ContainerView, has: ContainerAllocation | None) -> ContainerView:
    if container.ended:
        return container
    own = has.cpus.bit_count() if has is not None and has.exclusive else 0
    millis = 1000 * own if own else container.cpu_millis
    if not own and container.whole_cpus:
        millis -= 1  # it has no CPUs of its own yet
    memory = _bound(container.memory, has.memory if has is not None else ())
    return replace(container, cpu_millis=millis, memory=memory)


def _bound(asked: Amounts, blocks: Iterable[Block]) -> Amounts:
    sizes: dict[str, int] = {}
    for block in blocks:
        sizes[block.resource] = sizes.get(block.resource, 0) + block.size_bytes
    return tuple((name, sizes.get(name, size)) for name, size in asked)
