"""The node as the kernel has it: the CPUs of each container, and which are exclusive.

Does no I/O.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.meta.modes import AUDIT
from numapin_api.schema.plain import (
    ContainerAssignment,
    ContainerStatus,
    NodeAssignmentSpec,
    PoolsInForce,
)
from numapin_enforcer.cgroups.naming import CgroupNaming, Kind
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.cpu_index import CpuIndex
from numapin_enforcer.status.in_force.exclusivity import (
    NO_EVIDENCE,
    Evidence,
    Exclusivity,
    stray,
    withheld,
)
from numapin_enforcer.status.in_force.lack import Lack
from numapin_enforcer.status.in_force.memory import unbound
from numapin_enforcer.status.in_force.thread_cpus import Confined


@dataclass(frozen=True, slots=True)
class InForce:
    """One container of the spec as the kernel has it.

    `lack` says why it is not exclusive although the spec says so, and `unbound` why its memory is
    not where the spec says; None if nothing is missing.
    """

    path: str
    container: ContainerAssignment
    cpus: CpuSet
    mems: MemSet
    lack: Lack | None
    unbound: Lack | None

    @property
    def exclusive(self) -> bool:
        """Whether it has all its exclusive CPUs, and no cgroup of another container has any."""
        return self.container.exclusive and self.lack is None


def in_force(index: CpuIndex, evidence: Evidence = NO_EVIDENCE) -> tuple[InForce, ...]:
    """Every container of the spec that has a cgroup, with the sets read back from the kernel."""
    exclusivity, tree, wanted = Exclusivity(index, evidence), index.tree, index.wanted
    return tuple(
        InForce(
            found.path,
            container,
            found.effective_cpus,
            found.effective_mems,
            exclusivity.lack(found.path),
            unbound(found, wanted[found.path]),
        )
        for found in index.assigned()
        if (container := wanted[found.path].container)
        and wanted[tree.parents.get(found.path, found.path)].container is None
    )


LEAVES: Final = frozenset({Kind.CONTAINER, Kind.NESTED, Kind.OTHER})


@dataclass(frozen=True, slots=True)
class Summary:
    """A node as its kernel has it.

    Attributes:
        containers: the spec's containers that run.
        pools: the pools in force.
        running: UIDs of the spec's pods that have a container's cgroup, the sandbox's included. The
            kubelet removes a pod's own cgroup seconds later: an empty one has no CPUs to free.
        unsaved: how many containers are exclusive in the kernel and not reported so yet, because a
            restart would not know it.
        lacks: what keeps the spec from being in force.
        confined: a shared container whose processes may use only a part of its CPUs; None if there
            is none.
    """

    containers: tuple[ContainerStatus, ...] = ()
    pools: PoolsInForce | None = None
    running: tuple[str, ...] = ()
    unsaved: int = 0
    lacks: tuple[Lack, ...] = ()
    confined: Confined | None = None

    @property
    def audited(self) -> "Summary":
        """Without what keeps a spec from being in force that is not to be in force."""
        return replace(self, unsaved=0, lacks=(), confined=None)


class Summarizer:
    """Summarizes one tree after another; what has not changed is not looked at again."""

    def __init__(self) -> None:
        self._index: CpuIndex | None = None

    def summarize(
        self,
        spec: NodeAssignmentSpec,
        tree: Tree,
        desired: Mapping[str, Desired],
        naming: CgroupNaming,
        evidence: Evidence = NO_EVIDENCE,
    ) -> Summary:
        """What `tree`, read back after all writes, means for `spec`.

        If nothing is desired the summary has only what runs; if all is released it is empty.
        """
        if spec.mode == "None":
            return Summary()
        if not desired:
            return Summary(running=tuple(_running(spec, tree, naming)))
        if self._index is None:
            self._index = CpuIndex(tree, desired)
        else:
            self._index.update(tree, desired)
        summary = _summarized(spec, self._index, naming, evidence)
        return summary.audited if spec.mode == AUDIT else summary


def summarize(
    spec: NodeAssignmentSpec,
    tree: Tree,
    desired: Mapping[str, Desired],
    naming: CgroupNaming,
    evidence: Evidence = NO_EVIDENCE,
) -> Summary:
    """One summary; see `Summarizer.summarize`."""
    return Summarizer().summarize(spec, tree, desired, naming, evidence)


def _summarized(
    spec: NodeAssignmentSpec, index: CpuIndex, naming: CgroupNaming, evidence: Evidence
) -> Summary:
    running = tuple(_running(spec, index.tree, naming))
    found = _by_name(in_force(index, evidence), evidence)
    restart = evidence.restart_spec
    unsaved = _unsaved(found, restart) if restart is not None else frozenset()
    containers = tuple(
        ContainerStatus(
            pod_uid=key[0],
            container=key[1],
            cpus=one.cpus,
            mems=one.mems,
            exclusive=one.exclusive and key not in unsaved,
        )
        for key, one in sorted(found.items())
    )
    pools = _pools(spec, containers, _shared(index, naming, spec.exclusive_cpus))
    lacks = tuple(_lacks(spec, found, evidence, index.tree.root))
    shared = (one for one in evidence.confined if not index.wanted[one.path].exclusive)
    lacks = lacks or withheld(index)
    return Summary(containers, pools, running, len(unsaved), lacks, next(shared, None))


def _lacks(
    spec: NodeAssignmentSpec,
    found: Mapping[tuple[str, str], InForce],
    evidence: Evidence,
    kubepods: str,
) -> Iterator[Lack]:
    """What containers of the spec lack: those with a cgroup, then those without."""
    lacks = (lack for one in found.values() for lack in (one.lack, one.unbound))
    yield from (lack for lack in lacks if lack is not None)
    for one in spec.containers:
        key = one.key
        if one.exclusive and key in evidence.strays and key not in found:
            yield stray(one, evidence, kubepods)


def _by_name(found: Iterable[InForce], evidence: Evidence) -> dict[tuple[str, str], InForce]:
    """The containers that run, by pod and name.

    After a restart a container may have two cgroups for a moment. The one without processes does
    not count.
    """
    named: dict[tuple[str, str], InForce] = {}
    for one in found:
        key = one.container.key
        if one.path in evidence.starting or (key in named and one.path in evidence.deserted):
            continue
        if key not in named or named[key].path in evidence.deserted or one.lack is not None:
            named[key] = one
    return named


def _unsaved(
    found: Mapping[tuple[str, str], InForce], restart_spec: NodeAssignmentSpec
) -> frozenset[tuple[str, str]]:
    """Exclusive containers that have other CPUs in `restart_spec`, or none."""
    known = {one.key: one for one in restart_spec.containers}
    return frozenset(
        key for key, one in found.items() if one.exclusive and one.container != known.get(key)
    )


def _running(spec: NodeAssignmentSpec, tree: Tree, naming: CgroupNaming) -> Iterator[str]:
    assigned = {one.pod_uid for one in spec.containers}
    top = tree.children[tree.root]
    classes = [path for path in top if naming.parse(path).kind is Kind.QOS]
    pods = (*top, *(path for each in classes for path in tree.children[each]))
    yield from sorted(
        {
            uid
            for path in pods
            if (uid := naming.parse(path).pod_uid) in assigned
            and any(naming.parse(one).kind is Kind.CONTAINER for one in tree.children[path])
        }
    )


def _shared(index: CpuIndex, naming: CgroupNaming, exclusive: CpuSet) -> CpuSet:
    """The CPUs of all cgroups but those on exclusive CPUs."""
    shared = 0
    for mask, paths in index.groups():
        if mask & ~shared and any(
            naming.parse(path).kind in LEAVES and not index.wanted[path].cpus <= exclusive
            for path in paths
        ):
            shared |= mask
    return CpuSet.from_mask(shared)


def _pools(
    spec: NodeAssignmentSpec, containers: Iterable[ContainerStatus], shared: CpuSet
) -> PoolsInForce | None:
    """The pools in force; a shared pool without a container is as in the spec."""
    if spec.pools is None:
        return None
    exclusive = CpuSet.union(one.cpus for one in containers if one.exclusive)
    return PoolsInForce(
        reserved=spec.pools.reserved, shared=shared or spec.pools.shared, exclusive=exclusive
    )
