"""One pod that is resized: first it gives back what it has too much, later it gets more."""

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import NamedTuple

from numapin_api.quantity import exact_bytes, plural
from numapin_operator.placement.allocations import (
    Block,
    ContainerAllocation,
    PodAllocation,
    cpus_of,
    mems_of,
)
from numapin_operator.placement.errors import (
    EmptyPodSharedPoolError,
    PlacementError,
    SmtAlignmentError,
)
from numapin_operator.placement.explain import what_is_free
from numapin_operator.placement.machine.node import Node
from numapin_operator.placement.masks import NO_CPUS, CpuMask
from numapin_operator.placement.pods.near import as_required
from numapin_operator.placement.requests import (
    MEMORY,
    Amounts,
    PodView,
    container_memory,
    pod_cpus,
    pod_memory,
)
from numapin_operator.placement.resize.age import grants_of, keep_oldest
from numapin_operator.placement.resize.cpus import Growth, take_more
from numapin_operator.placement.resize.demand import Unit, is_resizable, is_whole, units_of
from numapin_operator.placement.resize.memory import less_memory, memory_change, more_memory


class Failed(NamedTuple):
    """Why a container does not get what it requests."""

    error: PlacementError
    requested: str


class PodResize:
    """A pod that has been placed on a node, and may ask for something else by now."""

    def __init__(self, node: Node, pod: PodView) -> None:
        """Args: `pod` is in the allocations of `node`."""
        self._node, self._pod = node, pod
        self._policy = node.policy
        self._can_change = is_resizable(pod, self._has)
        self._whole = self._can_change and is_whole(node.policy, pod, self._has)

    @property
    def _has(self) -> PodAllocation:
        return self._node.allocations.get(
            self._pod.uid, PodAllocation(self._pod.uid, self._pod.namespace, self._pod.name)
        )

    def shrink(self) -> None:
        """Give back the CPUs and the memory that the pod has too much; what it got first stays."""
        if not self._can_change:
            return
        allocation = self._has
        units = units_of(self._policy, self._pod, allocation)
        in_rest = {name for unit in units if not unit.exclusive for name in unit.names}
        for unit in units:
            few = unit.wanted < unit.cpus.bit_count()
            kept = self._kept(unit) if few else unit.cpus
            if kept != unit.cpus or _is_split(allocation, unit, in_rest):
                allocation = self._with_cpus(allocation, unit, kept)
        for name, asked in self._asked_memory():
            if (change := memory_change(_blocks(allocation, name), asked)) < 0:
                blocks = less_memory(_blocks(allocation, name), -change)
                allocation = self._with_blocks(allocation, name, blocks)
        if allocation is not self._has:
            self._node.replace(self._without_ended(allocation))

    def grow(self) -> tuple[Failed, ...]:
        """Get the CPUs and the memory that the pod has too little; returns why it got not all."""
        if not self._can_change or self._pod.uid not in self._node.allocations:
            return ()
        return tuple(self._grow())

    def _grow(self) -> Iterator[Failed]:
        for unit in units_of(self._policy, self._pod, self._has):
            surplus = unit.cpus.bit_count() - unit.wanted
            if surplus > 0:
                yield self._failed(_not_whole(unit), unit)
            elif surplus < 0 and self._may_grow:
                try:
                    with self._near_what_it_requires():
                        self._add_cpus(unit, -surplus)
                except PlacementError as refused:
                    yield self._failed(refused, unit)
        for name, asked in self._asked_memory():
            try:
                with self._near_what_it_requires():
                    self._add_memory(name, asked)
            except PlacementError as refused:
                self._explain(refused, name)
                yield Failed(refused, f"{name}: {exact_bytes(dict(asked)[MEMORY])} of memory")

    def _near_what_it_requires(self) -> AbstractContextManager[None]:
        """Give it more only near what its annotation requires, if it is there."""
        node = self._node
        return as_required(self._policy, node.cpus, node.memory, self._pod)

    @property
    def _together(self) -> bool:
        """Whether the topology policy is asked for the pod, not for each container."""
        return self._whole or self._policy.spec.topology.scope == "Pod"

    @property
    def _may_grow(self) -> bool:
        return self._node.wants(self._pod)

    def _kept(self, unit: Unit) -> CpuMask:
        if not unit.wanted:
            return NO_CPUS
        return keep_oldest(
            self._policy.cpu_groups,
            unit.cpus,
            unit.grants,
            unit.wanted,
            whole_cores=self._policy.cpu_taker.whole_cores_only and not self._whole,
        )

    def _add_cpus(self, unit: Unit, count: int) -> None:
        """Give a unit more CPUs.

        Raises:
            PlacementError: it cannot have them; nothing has changed.
        """
        has = self._has
        if self._whole and has.cpus.bit_count() + count > pod_cpus(self._pod):
            raise EmptyPodSharedPoolError(
                f"exclusive containers use up all CPUs of the pod, {', '.join(unit.names)} waits"
            )
        together = self._together
        mems = has.containers if together else [one for one in has.containers if _is_of(unit, one)]
        growth = Growth(
            own=unit.cpus,
            count=count,
            aligned=has.cpus if together else unit.cpus,
            mems=mems_of(block for one in mems for block in one.memory),
            near=has.cpus if self._whole else unit.cpus,
        )
        added = take_more(self._policy, self._node.cpus, growth)
        grown = self._with_cpus(has, unit, unit.cpus | added, added)
        self._node.replace(self._without_ended(grown))

    def _asked_memory(self) -> Iterator[tuple[str, Amounts]]:
        """The memory that is asked for, by the container whose entry accounts for it."""
        if not self._policy.binds_memory:
            return
        if self._whole:
            level, has = self._pod.pod_level, self._has.containers
            if level is not None and level.granted and has:
                yield has[0].name, pod_memory(self._pod)
            return
        for one in self._pod.containers:
            if one.granted and not (one.ended or one.cpu_claims):
                yield one.name, container_memory(self._pod, one)

    def _add_memory(self, name: str, asked: Amounts) -> None:
        has, tables = self._has, self._node.memory
        blocks = _blocks(has, name)
        change = memory_change(blocks, asked)
        if tables is None or change <= 0 or not self._may_grow:
            return
        aligned = has.cpus if self._together else _entry(has, name).cpus
        more = more_memory(self._policy, tables, blocks, change, aligned)
        self._node.replace(self._with_blocks(has, name, more))

    def _with_cpus(
        self, allocation: PodAllocation, unit: Unit, cpus: CpuMask, added: CpuMask = NO_CPUS
    ) -> PodAllocation:
        """The pod with other CPUs for a unit, in the order in which it got them."""
        older = tuple(kept for one in grants_of(unit.cpus, unit.grants) if (kept := one & cpus))
        grants = grants_of(cpus, (*older, added)) if unit.cpus else ()
        changed = {
            name: _entry(allocation, name)._replace(
                cpus=cpus, grants=grants, exclusive=unit.exclusive and cpus != 0
            )
            for name in unit.names
            if unit.exclusive or not _entry(allocation, name).exclusive
        }
        return self._with_containers(allocation, changed)

    def _with_blocks(
        self, allocation: PodAllocation, name: str, blocks: tuple[Block, ...]
    ) -> PodAllocation:
        entry = _entry(allocation, name)
        gained = mems_of(blocks) & ~mems_of(entry.memory)
        changed = {name: entry._replace(memory=blocks, mems=entry.mems | gained)}
        if self._whole:
            others = (one for one in allocation.containers if one.mems and one.name != name)
            changed |= {one.name: one._replace(mems=one.mems | gained) for one in others}
        return self._with_containers(allocation, changed)

    def _with_containers(
        self, allocation: PodAllocation, changed: dict[str, ContainerAllocation]
    ) -> PodAllocation:
        """The pod with some containers replaced or added; those that have nothing are left out."""
        every = {one.name: one for one in allocation.containers} | changed
        order = {one.name: place for place, one in enumerate(self._pod.containers)}
        listed = sorted(every.values(), key=lambda one: order.get(one.name, len(order)))
        if not self._whole:
            listed = [one for one in listed if one.cpus or one.memory]
        return allocation._replace(containers=tuple(listed))

    def _without_ended(self, allocation: PodAllocation) -> PodAllocation:
        """A pod as a whole, whose init containers that ended keep only what others of it have."""
        if not self._whole:
            return allocation
        ended = {one.name for one in self._pod.containers if one.ended}
        lasting = cpus_of(one for one in allocation.containers if one.name not in ended)
        changed = {
            one.name: one._replace(cpus=mine, exclusive=one.exclusive and mine != 0, grants=())
            for one in allocation.containers
            if one.name in ended and (mine := one.cpus & lasting) != one.cpus
        }
        changed_pod = self._with_containers(allocation, changed)
        if any(one.cpus or one.memory for one in changed_pod.containers):
            return changed_pod
        return changed_pod._replace(containers=())

    def _failed(self, error: PlacementError, unit: Unit) -> Failed:
        self._explain(error, unit.names[0])
        return Failed(error, f"{unit.names[0]}: {plural(unit.wanted, 'CPU')}")

    def _explain(self, error: PlacementError, name: str) -> None:
        node, error.container = self._node, name
        error.free = what_is_free(node.policy, node.cpus, node.memory, error)


def _is_split(allocation: PodAllocation, unit: Unit, in_rest: Collection[str]) -> bool:
    """Whether a container has entered the rest of its pod, or has left it without others there."""
    shared = [one for one in map(partial(_entry, allocation), unit.names) if not one.exclusive]
    if unit.exclusive:
        return any(one.cpus and one.name not in in_rest for one in shared)
    return any(one.cpus != unit.cpus for one in shared)


def _not_whole(unit: Unit) -> SmtAlignmentError:
    return SmtAlignmentError(
        f"wanted {unit.wanted} of its {unit.cpus.bit_count()} CPUs, which are no whole cores"
    )


def _is_of(unit: Unit, one: ContainerAllocation) -> bool:
    return one.name in unit.names


def _entry(allocation: PodAllocation, name: str) -> ContainerAllocation:
    found = (one for one in allocation.containers if one.name == name)
    return next(found, ContainerAllocation(name))


def _blocks(allocation: PodAllocation, name: str) -> tuple[Block, ...]:
    return _entry(allocation, name).memory
