"""Which containers a policy would not place as they are.

A container keeps its CPUs and memory when the policy is edited, and what is left of them when the
hardware changes. It is outdated if the policy, with
nothing free on the node but what the container has, would not give it just that. What an option
only prefers is therefore met by any placement. A pod with pod-level resources counts as fitting: it
has given back the CPUs that its containers leave, parts of cores among them. A container that lost
CPUs that went offline is outdated until it has as many as it requests. A container whose
resize waits is compared by what it has, and one that was resized by the number of its CPUs, and
under `SingleNUMANode` by their NUMA node: what was free meanwhile is unknown. With `fullPCPUsOnly`
a container that has parts of cores counts as outdated; the policy itself gives it these where the
NUMA nodes of the hint have no whole core left, as the kubelet does. Devices have no say: a pod that
was placed before it was known which it has stays as it is.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_api.quantity import plural
from numapin_api.schema.plain_assignment import ContainerAssignment, NodeAssignmentSpec
from numapin_operator.placement.allocations import PodAllocation
from numapin_operator.placement.assignment.entries import allocation_of
from numapin_operator.placement.assignment.moving import finished
from numapin_operator.placement.errors import (
    NotEnoughMemoryError,
    PlacementError,
    SmtAlignmentError,
    TopologyAffinityError,
)
from numapin_operator.placement.machine.node import Node
from numapin_operator.placement.masks import CpuMask, NumaMask, members
from numapin_operator.placement.policy.node_policy import NodePolicy
from numapin_operator.placement.requests import (
    ContainerKind,
    ContainerView,
    PodView,
    lost_cpus,
)
from numapin_operator.placement.resize.demand import as_placed, only
from numapin_operator.placement.resize.run_again import as_ended, that_run_again
from numapin_operator.placement.resize.settled import Settled, steady_pods

_POD: Final = attrgetter("pod_uid", "claimed")

_UNFIT: Final = "does not fit the policy: "
_UNALIGNED: Final = f"{_UNFIT}{SmtAlignmentError.reason}"
"""With `fullPCPUsOnly` a container that reuses the CPUs of init containers needs as many free cores
again, as with the kubelet. Those that there were when the pod was placed are not known."""


@dataclass(frozen=True, slots=True)
class Outdated:
    """A container that a policy would not place as it is, and why not."""

    namespace: str
    pod: str
    container: str
    why: str


def mark_outdated(
    policy: NodePolicy,
    spec: NodeAssignmentSpec,
    pods: Iterable[PodView],
    *,
    edited: bool,
    settled: Mapping[str, Settled] = MappingProxyType({}),
) -> tuple[NodeAssignmentSpec, tuple[Outdated, ...]]:
    """Mark each container that the policy would not place as it is, and name it.

    Args:
        policy: what governs the node now.
        spec: the assignment, with the marks so far; a container that moves counts as moved.
        pods: the pods bound to the node.
        edited: `spec` was written for another generation or another layout of the machine, so
            every container is checked. Otherwise those suffice whose mark or pod may have changed.
        settled: pods whose entries in `spec` are those of a plan before, by UID.
    """
    shared = spec.pools.shared.mask if spec.pools else 0
    crowded = policy.spec.reserved.strict and bool(shared & policy.reserved)
    comparison, known = _Comparison(policy, crowded), {pod.uid: pod for pod in pods}
    steady = set[str]() if edited or crowded else steady_pods(policy, settled, known)
    if not edited and not comparison.any_may_differ(spec.containers, steady, known):
        return spec, ()
    waiting = {one.pod_uid for one in spec.refused_resizes or ()}
    entries: list[ContainerAssignment] = []
    found: list[Outdated] = []
    for (uid, claimed), grouped in groupby(spec.containers, key=_POD):
        of_pod, pod = tuple(grouped), known.get(uid)
        stays = uid in steady or claimed
        if stays or pod is None or not (edited or comparison.may_differ(pod, of_pod)):
            entries += of_pod  # nothing is known of a pod that is gone but still runs
            continue
        moved = tuple(map(finished, of_pod))
        if uid in waiting and not _has_lost(pod, moved):
            pod = as_placed(pod, allocation_of(uid, moved))
        for entry, (_, why) in zip(of_pod, comparison.compare(pod, moved), strict=True):
            mark = True if why else None
            entries.append(entry if entry.outdated is mark else replace(entry, outdated=mark))
            if why:
                found.append(Outdated(entry.namespace, entry.pod, entry.container, why))
    return replace(spec, containers=tuple(entries)), tuple(found)


def is_outdated(policy: NodePolicy, pod: PodView, entries: Sequence[ContainerAssignment]) -> bool:
    """Whether the policy would not place a pod's containers as these entries say."""
    return any(why for _, why in _Comparison(policy, crowded=False).compare(pod, entries))


class _Comparison:
    """Compares what containers have with what one policy would give them."""

    def __init__(self, policy: NodePolicy, crowded: bool) -> None:
        """Compare with `policy`; `crowded` if only strictly reserved CPUs are left to share."""
        known = policy if policy.devices is None else replace(policy, devices=None)
        self._policy, self._crowded = known, crowded

    def any_may_differ(
        self,
        containers: Iterable[ContainerAssignment],
        steady: Collection[str],
        known: Mapping[str, PodView],
    ) -> bool:
        """Whether a mark may be wrong of a container whose pod is not steady."""
        others = (one for one in containers if one.pod_uid not in steady)
        for (uid, claimed), grouped in groupby(others, key=_POD):
            pod = known.get(uid)
            if not claimed and pod is not None and self.may_differ(pod, tuple(grouped)):
                return True
        return False

    def may_differ(self, pod: PodView, entries: Sequence[ContainerAssignment]) -> bool:
        """Whether a mark may be wrong although the policy and the machine are the same."""
        return (
            self._crowded
            or not self._selects(pod)
            or _has_lost(pod, entries)
            or any(entry.outdated or entry.cpus.mask & self._policy.reserved for entry in entries)
        )

    def compare(
        self, pod: PodView, entries: Sequence[ContainerAssignment]
    ) -> Iterator[tuple[ContainerAssignment, str]]:
        """Each entry of a pod with why the policy would not place it so; empty if it would.

        An init container that runs again has what those after it have, which are compared.
        """
        again = that_run_again(pod, entries)
        lasting = tuple(one for one in entries if one.container not in again)
        why = {one.container: why for one, why in self._compare(as_ended(pod, again), lasting)}
        yield from ((one, why.get(one.container, "")) for one in entries)

    def _compare(
        self, pod: PodView, entries: Sequence[ContainerAssignment]
    ) -> Iterator[tuple[ContainerAssignment, str]]:
        if not self._selects(pod):
            yield from ((entry, "is not selected any more") for entry in entries)
            return
        together: str | None = None
        if pod.pod_level is not None or self._policy.spec.topology.scope == "Pod":
            together = self._differs(pod, entries)
            if together == _UNALIGNED and pod.pod_level is None:
                together = None  # each is compared alone: see `_UNALIGNED`
        for entry in entries:
            reserved = entry.cpus.mask & self._policy.reserved
            if reserved:
                yield entry, f"uses {CpuSet.from_mask(reserved)}, which is reserved now"
            elif lost := lost_cpus(pod, entry.container, len(entry.cpus)):
                cpus = plural(lost, "CPU")
                yield entry, f"lost {cpus} that went offline or that pods may not use"
            elif self._crowded and entry.exclusive:
                yield entry, "keeps a CPU that the shared pool lacks"
            else:
                alone = together is None
                why = self._differs(only(pod, entry.container), (entry,)) if alone else together
                yield entry, why or self._splits_cores(pod, entry)

    def _splits_cores(self, pod: PodView, entry: ContainerAssignment) -> str:
        """Which CPUs lack their siblings, if the policy gives whole cores only."""
        if not self._policy.spec.options.full_pcpus_only or pod.pod_level is not None:
            return ""
        cpus = entry.cpus.mask
        parts = cpus & ~self._policy.cpu_groups.whole_cores(CpuMask(cpus))
        return f"has parts of cores: {CpuSet.from_mask(parts)}" if parts else ""

    def _selects(self, pod: PodView) -> bool:
        return pod.selected and pod.qos in self._policy.spec.pods.qos_classes

    def _differs(self, pod: PodView, entries: Sequence[ContainerAssignment]) -> str:
        """Why a pod whose containers have these entries would not get them; empty if it would."""
        held = allocation_of(pod.uid, entries)
        node = self._node_with(held)
        try:
            # Whoever may edit a pod must not make it outdated: places count when it is placed.
            given = node.attempt(replace(pod, containers=_not_ended(pod), near=None))
        except PlacementError as error:
            is_memory = isinstance(error, NotEnoughMemoryError)
            if pod.pod_level is not None or (is_memory and self._may_stay(held)):
                return ""
            if isinstance(error, TopologyAffinityError) and self._was_resized(pod, held):
                return ""
            return f"{_UNFIT}{error.reason}"
        if given.cpus != held.cpus if given.pod_level else _sizes(given) != _sizes(held):
            return "would get another number of CPUs"
        bound, would_bind = _resources(held), _resources(given)
        if bound != would_bind:
            return "has memory bound" if bound - would_bind else "has no memory bound"
        return ""

    def _was_resized(self, pod: PodView, held: PodAllocation) -> bool:
        """Whether a container was resized, so that its NUMA nodes need not be those of a new one.

        Of a resize of memory alone, or of a container that gave all its CPUs back, nothing is known
        but that the pod was edited.
        """
        if self._policy.spec.topology.policy == "SingleNUMANode":
            numa_nodes_of = self._policy.cpu_groups.numa_nodes_of
            if any(numa_nodes_of(one.cpus).bit_count() > 1 for one in held.containers):
                return False
        if any(one.grants for one in held.containers):
            return True
        with_cpus = {one.name for one in held.containers if one.cpus}
        lasting = {one.name for one in pod.containers if one.kind is not ContainerKind.INIT}
        return pod.edited and (bool(held.memory) or not lasting <= with_cpus)

    def _node_with(self, held: PodAllocation) -> Node:
        """The node with nothing free but what a pod has, and the reserved CPUs.

        Its NUMA nodes are bound together as they were for the pod: which of them others had bound
        together before is not known any more.
        """
        policy = self._lenient
        mems = {block.numa_nodes for block in held.memory}
        if mems:
            reach = 0
            for numa_nodes in mems:
                reach |= numa_nodes
            capacity = {
                resource: {node: size if reach >> node & 1 else 0 for node, size in by_node.items()}
                for resource, by_node in policy.capacity.items()
            }
            policy = replace(policy, capacity=capacity)
        node = Node(policy)
        node.cpus.claim(CpuMask(policy.cpu_groups.cpus & ~held.cpus & ~policy.reserved))
        if node.memory is not None:
            for block in held.memory:
                node.memory.assign(block._replace(size_bytes=0))
        return node

    def _may_stay(self, held: PodAllocation) -> bool:
        """Whether the policy allows memory to be where it is, whatever it would choose itself.

        What a topology policy that refuses nothing leads to depends on what others had when the pod
        was placed, which is not known any more.
        """
        policy = self._policy
        if policy.spec.topology.policy not in ("None", "BestEffort"):
            return False
        bound = Counter[tuple[NumaMask, str]]()
        for block in held.memory:
            if policy.spec.memory.policy == "SingleNUMA" and len(block.node_ids) > 1:
                return False
            bound[block.numa_nodes, block.resource] += block.size_bytes
        return bool(bound) and all(
            size
            <= sum(policy.capacity.get(resource, {}).get(one, 0) for one in members(numa_nodes))
            for (numa_nodes, resource), size in bound.items()
        )

    @cached_property
    def _lenient(self) -> NodePolicy:
        """The policy with reserved CPUs in the shared pool, so that it is not empty."""
        reserved = self._policy.spec.reserved.model_copy(update={"strict": False})
        return replace(
            self._policy, spec=self._policy.spec.model_copy(update={"reserved": reserved})
        )


def _has_lost(pod: PodView, entries: Iterable[ContainerAssignment]) -> bool:
    return any(lost_cpus(pod, one.container, len(one.cpus)) for one in entries)


def _not_ended(pod: PodView) -> tuple[ContainerView, ...]:
    return tuple(one for one in pod.containers if not one.ended)


def _sizes(allocation: PodAllocation) -> dict[str, int]:
    """The number of exclusive CPUs of each container, which may be some of an init container."""
    return {one.name: one.cpus.bit_count() for one in allocation.containers if one.cpus}


def _resources(allocation: PodAllocation) -> set[str]:
    return {block.resource for block in allocation.memory}
