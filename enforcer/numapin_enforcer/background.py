"""Background updates after each pass: container names, runtime, systemd, CFS limits, memory."""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final

from numapin_api.conditions.reasons import Obstacle
from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import NodeAssignmentSpec, RuntimeStatus
from numapin_enforcer.cfs_quota.plan import (
    UnlimitedCgroups,
    cgroups_without_limit,
    other_containers,
)
from numapin_enforcer.cfs_quota.updater import CfsQuotaUpdater
from numapin_enforcer.cgroups.kubepods import PodTree
from numapin_enforcer.cgroups.memory.mover import MemoryMover
from numapin_enforcer.cgroups.naming import CgroupNaming, Kind
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.plan.containment import Desired, restored_mems
from numapin_enforcer.plan.drift import Cause, Drift
from numapin_enforcer.reconciler import Converged
from numapin_enforcer.runtime.container_index import ContainerIndex
from numapin_enforcer.runtime.container_names import ContainerNames
from numapin_enforcer.runtime.interface import ContainerResources, RuntimeVersion
from numapin_enforcer.runtime.outside_containers import OutsideContainers
from numapin_enforcer.runtime.own_container import OwnContainer
from numapin_enforcer.runtime.previous_updates import PreviousUpdates
from numapin_enforcer.runtime.resources_to_send import resources_to_send
from numapin_enforcer.runtime.unlisted import unlisted_obstacles
from numapin_enforcer.runtime.updater import NO_CHANGE, RuntimeUpdater
from numapin_enforcer.status.conditions import move_obstacles, moving, stale_in_runtime, unnamed
from numapin_enforcer.status.reporter import BackgroundReport
from numapin_enforcer.systemd.interface import SliceSets
from numapin_enforcer.systemd.slices import qos_slices, slice_sets
from numapin_enforcer.systemd.updater import SliceUpdater

_LONGEST_RUNTIME_TEXT: Final = 128
"""Longest name or version of a runtime, in characters."""


@dataclass(eq=False, slots=True)
class BackgroundUpdates:
    """Hands the result of each pass to the background tasks, and collects what they report."""

    names: ContainerNames
    runtime: RuntimeUpdater
    slices: SliceUpdater
    cfs_quota: CfsQuotaUpdater
    memory: MemoryMover
    previous: PreviousUpdates
    outside: OutsideContainers
    _runtime_stale: Mapping[str, CpuSet] = field(default_factory=dict, init=False)
    _unnamed: frozenset[str] = field(default=frozenset(), init=False)
    _unlisted: tuple[Obstacle, ...] = field(default=(), init=False)
    _index: ContainerIndex | None = field(default=None, init=False)
    _desired: Mapping[str, Desired] = field(default_factory=dict, init=False)
    _own: OwnContainer = field(default_factory=OwnContainer, init=False)
    _growing: frozenset[str] = field(default=frozenset(), init=False)
    _intruders: set[str] = field(default_factory=set, init=False)
    """Shared containers that were found on exclusive CPUs: the runtime may remember a set for them,
    from a kubelet that had the static policy before."""

    def __post_init__(self) -> None:
        self.runtime.on_update = self._note_runtime_update

    def update(
        self,
        spec: NodeAssignmentSpec | None,
        pods: PodTree,
        done: Converged,
        *,
        full_resync: bool,
    ) -> None:
        """Start what a pass requires that enforced `spec`, or (None) released every cgroup."""
        index = self._containers(done.tree, pods.naming)
        assigned = index.of_pods({one.pod_uid for one in spec.containers} if spec else ())
        paths = [index.found[id_][0] for id_ in sorted(assigned)]
        self._update_quotas(spec, pods, done, paths, full_resync=full_resync)
        for drift in done.drifts:
            self._note_drift(drift, pods.naming)
        if done.tree is None:
            return
        self._desired = done.desired
        self.memory.want(done.moves, pods.files)
        self._intruders &= index.found.keys()
        self._request_names(assigned, index.found)
        self._find_unlisted(spec, pods, done.tree, index.found)
        self._update_runtime(done, index, assigned)
        self._note_growing(done, index.found)
        self._runtime_stale = {
            **{index.found[id_][0]: cpus for id_, cpus in self.runtime.stale_cpus.items()},
            **self.previous.unnamed(spec, self.names.known),
        }
        self._forget_mems(done, index.found)
        if spec is not None:
            self.slices.want(slice_sets(done.desired, done.tree, pods.naming))
        self._locate_outside(spec, pods, index, full_resync=full_resync)
        if full_resync:
            self.names.forget_except(index.found.keys())

    def _forget_mems(self, done: Converged, found: Mapping[str, tuple[str, str]]) -> None:
        """Forget what bound cgroups had, unless the runtime may bind them once more."""
        assert done.tree is not None
        restored = restored_mems(done.tree, done.desired, self.memory.found_mems)
        pending = {found[id_][0] for id_ in self.runtime.pending_ids & found.keys()}
        self.memory.forget(restored - pending)

    def _note_growing(self, done: Converged, found: Mapping[str, tuple[str, str]]) -> None:
        """What waits for its runtime after this pass."""
        self._growing = done.growing
        self.runtime.note_growing({id_ for id_, (path, _) in found.items() if path in done.growing})

    @property
    def by_runtime(self) -> frozenset[str]:
        """The cgroups of containers that gain CPUs by an update of their runtime."""
        found = self._index.found if self._index is not None else {}
        return frozenset(path for id_, (path, _) in found.items() if self.runtime.may_grow(id_))

    def _locate_outside(
        self,
        spec: NodeAssignmentSpec | None,
        pods: PodTree,
        index: ContainerIndex,
        *,
        full_resync: bool,
    ) -> None:
        """Look for containers outside of the kubelet's tree if one of the spec is exclusive."""
        needed = spec is not None and bool(spec.exclusive_cpus)
        self.outside.locate(index.found.keys(), pods.outside, needed=needed, resynced=full_resync)

    def external(self, drifts: Iterable[Drift], naming: CgroupNaming) -> list[Drift]:
        """Those that no late write of the runtime can have made. Call it before `update`."""
        return [one for one in drifts if not self._may_be_late(one, naming)]

    def _may_be_late(self, drift: Drift, naming: CgroupNaming) -> bool:
        one = naming.parse(drift.path)
        id_ = one.container_id if one.kind is Kind.CONTAINER else ""
        return self.runtime.may_have_made(id_, drift.found, drift.meant)

    def clear_slices(self, tree: Tree, naming: CgroupNaming) -> None:
        """Have systemd forget the sets of the kubelet's slices, since all cgroups are released."""
        self.slices.want(dict.fromkeys(qos_slices(tree, naming), SliceSets()))

    def rest(self, pods: PodTree, *, untouched: bool, full_resync: bool) -> None:
        """Move no memory, and restore every CFS limit that was removed.

        If the node is to be left `untouched`, change nothing more; what was changed stays.
        """
        self.memory.want((), pods.files)
        if not untouched:
            none, root = UnlimitedCgroups(), pods.naming.root
            self.cfs_quota.want(none, pods.files, root, full_resync=full_resync)
            return
        self.runtime.pause()
        self.slices.pause()
        self.cfs_quota.pause()

    def need_list_since(self, seconds: float | None) -> None:
        """Have the runtime's containers listed at that time or later; None if any list will do."""
        self.outside.need_since(seconds)

    @property
    def recheck_seconds(self) -> float | None:
        """When to report again although no event comes; None if that is not needed."""
        return self.names.patience_seconds

    @property
    def names_complete(self) -> bool:
        """Whether the runtime has named every container whose name is needed."""
        return not self._unnamed

    def report(self, failed_passes: int) -> BackgroundReport:
        """What the background tasks report after so many failed passes in a row."""
        version = self.names.runtime_version
        return BackgroundReport(
            _cut(version) if version else None,
            stale_cpus={**self.slices.stale_cpus, **self._runtime_stale},
            stalled=tuple(self._stalled(failed_passes)),
            working=tuple(self._working(failed_passes)),
            note="; ".join(filter(None, (self.slices.note, self.outside.note))),
            finishes_soon=(
                self.slices.finishes_soon
                or self.memory.finishes_soon
                or bool(self._growing)
                or self.names.patience_seconds is not None
            ),
            outside=self.outside.found,
            running=self.outside.running,
            listed_at=self.outside.listed_at,
            strays=self.outside.strays,
        )

    def _stalled(self, failed_passes: int) -> Iterator[Obstacle]:
        yield from move_obstacles(self.memory.failures, self._desired, failed_passes)[0]
        yield from self.names.obstacles()
        yield from self._unlisted

    def _working(self, failed_passes: int) -> Iterator[Obstacle]:
        yield from move_obstacles(self.memory.failures, self._desired, failed_passes)[1]
        yield from moving(self.memory.slow)
        yield from self.memory.obstacles()
        yield from self.cfs_quota.obstacles()
        yield from self.slices.obstacles()
        yield from self.runtime.obstacles()
        yield from stale_in_runtime(self._runtime_stale)
        yield from unnamed(self.names.slow)

    def _update_quotas(
        self,
        spec: NodeAssignmentSpec | None,
        pods: PodTree,
        done: Converged,
        assigned: Iterable[str],
        *,
        full_resync: bool,
    ) -> None:
        unlimited = UnlimitedCgroups()
        if spec is not None and spec.cpu_quota == "Unlimited":
            paths = cgroups_without_limit(done.desired, pods.naming)
            others = other_containers(assigned, paths, pods.naming, self.names.known)
            unlimited = UnlimitedCgroups(paths, others, may_be_resized=True)
        if self._is_resized(unlimited.paths, done, pods.snapshot.pop_written()):
            self.cfs_quota.note_resize()
        self.cfs_quota.want(unlimited, pods.files, pods.naming.root, full_resync=full_resync)

    def _note_runtime_update(self, id_: str, resources: ContainerResources) -> None:
        """The runtime has written the CFS limit that it has for a container."""
        if self._index is not None and id_ in self._index.found:
            path = self._index.found[id_][0]
            self.cfs_quota.note_runtime_update(path, resources.quota_us)

    def _is_resized(
        self, unlimited: Iterable[str], done: Converged, written: AbstractSet[str]
    ) -> bool:
        """Whether the kubelet may have set a limit: others wrote, or a container's CPUs differ."""
        return any(
            path in written
            or (path in self._desired and self._desired[path].cpus != done.desired[path].cpus)
            for path in unlimited
        )

    def _note_drift(self, drift: Drift, naming: CgroupNaming) -> None:
        """Send the set again: systemd or the runtime may have made the change.

        A shared container is sent its set once: a process inside may cause such changes at will.
        """
        self.slices.note_external_change(drift.path)
        parsed = naming.parse(drift.path)
        if parsed.kind is not Kind.CONTAINER or parsed.container_id in self._intruders:
            return
        if parsed.container_id in self.runtime.sent_ids:
            self.runtime.note_external_change(parsed.container_id, drift.found[0])
        elif drift.cause is Cause.INTRUSION:
            self._intruders.add(parsed.container_id)

    def _containers(self, tree: Tree | None, naming: CgroupNaming) -> ContainerIndex:
        if self._index is None or self._index.naming is not naming:
            self._index = ContainerIndex(naming)
        if tree is not None:
            self._index.update(tree)
        return self._index

    def _request_names(
        self, assigned: AbstractSet[str], found: Mapping[str, tuple[str, str]]
    ) -> None:
        done = self.runtime.sent_ids | self.names.unlisted
        self.previous.update(found, self.names.known, done)
        self._unnamed = self.names.need(assigned | set(self.previous.ids))

    def _find_unlisted(
        self,
        spec: NodeAssignmentSpec | None,
        pods: PodTree,
        tree: Tree,
        found: Mapping[str, tuple[str, str]],
    ) -> None:
        known, unlisted = self.names.known, self.names.long_unlisted & found.keys()
        if not unlisted:
            self._unlisted = ()
            return
        self._unlisted = unlisted_obstacles(
            spec,
            tree,
            {id_: found[id_] for id_ in unlisted},
            {(uid, known[id_]) for id_, (_, uid) in found.items() if id_ in known},
            pods.files.has_tasks,
        )

    def _update_runtime(
        self, done: Converged, index: ContainerIndex, assigned: AbstractSet[str]
    ) -> None:
        """Send the runtime what each container has; an unnamed one may be an exclusive one.

        All other containers than those that are `assigned`, or were updated, have the shared pool.
        """
        assert done.tree is not None
        previous, resources = self.previous.resources(self.names.known), {}
        updated, lifted = self.runtime.sent_ids | previous.keys(), self.cfs_quota.runtime_may_lack
        of_lifted = {index.naming.parse(path).container_id for path in lifted}
        others = of_lifted | self._intruders
        for id_ in sorted((assigned | updated | others) & index.found.keys() - self._unnamed):
            path, _ = index.found[id_]
            was_changed = id_ in updated or path in lifted or id_ in self._intruders
            if not (was_changed or (path in done.desired and done.desired[path].exclusive)):
                continue
            sent = self.runtime.sent(id_) or previous.get(id_)
            if sent is None and (path in lifted or id_ in self._intruders):
                sent = NO_CHANGE
            grows = path in done.growing
            update = resources_to_send(done.desired, done.tree, path, sent, grows=grows)
            if update is not None and (update.are_new or id_ not in previous):
                quota_us = self.cfs_quota.runtime_quota_us(path)
                resources[id_] = replace(update.resources, quota_us=quota_us)
        own = self._own.resources(done.failures, done.tree, done.desired, index.found)
        self.runtime.want(resources | own, previous)


def _cut(version: RuntimeVersion) -> RuntimeStatus:
    """The runtime's own texts, cut to what the status may hold."""
    return RuntimeStatus(
        version.name[:_LONGEST_RUNTIME_TEXT], version.version[:_LONGEST_RUNTIME_TEXT]
    )
