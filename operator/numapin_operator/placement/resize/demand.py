"""What a pod that has been placed asks for now, beside what it has."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from numapin_operator.placement.allocations import Block, ContainerAllocation, PodAllocation
from numapin_operator.placement.masks import NO_CPUS, CpuMask
from numapin_operator.placement.policy.node_policy import NodePolicy
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
    It is not resized itself: on a further run it shares what those after it have.
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
        if one.granted and not (one.cpu_claims or one.kind is ContainerKind.INIT)
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
            if one.granted and not (one.cpu_claims or one.kind is ContainerKind.INIT)
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
    """Its exclusive containers, and last the containers that share the pod's rest.

    A container that is to have CPUs of its own stays in the rest until it has them. If it leaves
    no other one there, the first of such containers has the rest for its own.
    """
    total = pod_cpus(pod)
    wanted = {one.name: exclusive_cpus(pod, one) if total else 0 for one in lasting}
    in_rest = [name for name in wanted if has[name].cpus and not has[name].exclusive]
    shares = any(not count for count in wanted.values())
    heirs = () if shares else in_rest[:1]
    units = list[Unit]()
    for name, count in wanted.items():
        mine = has[name]
        own = mine.exclusive or name in heirs
        cpus, grants = (mine.cpus, mine.grants) if own else (NO_CPUS, ())
        if count or cpus:
            units.append(Unit((name,), cpus, grants, count))
    if not shares:
        return tuple(units)
    first = has[in_rest[0]] if in_rest else ContainerAllocation("")
    rest = max(1, total - sum(wanted.values())) if total else 0
    sharing = (name for name, count in wanted.items() if not count)
    names = (*sharing, *(name for name in in_rest if wanted[name]))
    return (*units, Unit(names, first.cpus, first.grants, rest, exclusive=False))


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


def only(pod: PodView, name: str) -> PodView:
    """The pod as if it had that container alone."""
    alone = tuple(
        replace(one, kind=ContainerKind.APP, ended=False)
        for one in pod.containers
        if one.name == name
    )
    return replace(pod, containers=alone)
