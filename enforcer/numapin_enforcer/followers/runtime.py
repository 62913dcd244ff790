"""Sends the runtime what each container has after a pass."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from numapin_api.conditions.reasons import Obstacle, Reason
from numapin_api.cpuset import CpuSet
from numapin_api.quantity import plural
from numapin_enforcer.cfs_quota.updater import CfsQuotaUpdater
from numapin_enforcer.cgroups.naming import CgroupNaming, Kind
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.followers.containers import Containers
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.plan.drift import Cause, Drift
from numapin_enforcer.runtime.container_index import Row
from numapin_enforcer.runtime.interface import ContainerResources
from numapin_enforcer.runtime.updates.own_container import mark_own, own_resources
from numapin_enforcer.runtime.updates.resources_to_send import resources_to_send
from numapin_enforcer.runtime.updates.updater import NO_CHANGE, RuntimeUpdater
from numapin_enforcer.status.obstacles import stale_in_runtime
from numapin_enforcer.status.state import State


@dataclass(eq=False, slots=True)
class RuntimeResources:
    """Hands the updater the resources of all containers that are, or were, exclusive."""

    containers: Containers
    updater: RuntimeUpdater
    cfs_quota: CfsQuotaUpdater
    _stale: Mapping[str, CpuSet] = field(default_factory=dict, init=False)
    _growing: frozenset[str] = field(default=frozenset(), init=False)
    _releases: bool = field(default=False, init=False)

    def follow(self, one: Pass) -> None:
        """Send what has changed; if the node is left alone, nothing."""
        if one.naming is None:
            return
        if one.left_alone:
            self.updater.pause()
        self._releases, tree = one.released, one.result.tree
        if one.rests or tree is None:
            return
        for drift in one.result.drifts:
            self._note_drift(drift, one.naming)
        found = self.containers.found
        self._update(one, tree)
        self._growing = growing = one.result.growing
        self.updater.note_growing({id_ for id_, row in found.items() if row.path in growing})
        self._stale = {
            **{found[id_].path: cpus for id_, cpus in self.updater.stale_cpus.items()},
            **self.containers.previous.unnamed(one.enforced, one.names),
        }

    def state(self) -> State:
        """What the runtime does not have yet."""
        return State(
            working=(*self._obstacles(), *stale_in_runtime(self._stale)),
            stale_cpus=self._stale,
            finishes_soon=bool(self._growing),
        )

    def _obstacles(self) -> tuple[Obstacle, ...]:
        """What keeps the runtime from having what it must have.

        A release has not ended before the runtime has it; a set in force does not wait for that.
        """
        obstacles = self.updater.obstacles()
        if obstacles or not self._releases or not self.pending:
            return obstacles
        containers = plural(len(self.pending), "container")
        message = f"the container runtime is being sent the CPUs of {containers}"
        return (Obstacle(Reason.APPLYING, message),)

    @property
    def growable(self) -> frozenset[str]:
        """The cgroups of containers that gain CPUs by an update of their runtime."""
        found = self.containers.found
        ids = self.updater.sent_ids & found.keys()
        return frozenset(found[id_].path for id_ in ids if self.updater.may_grow(id_))

    @property
    def pending(self) -> frozenset[str]:
        """The cgroups to which the runtime may still write what it was sent before."""
        found = self.containers.found
        return frozenset(found[id_].path for id_ in self.updater.pending_ids & found.keys())

    def _note_drift(self, drift: Drift, naming: CgroupNaming) -> None:
        """Send the set again: the runtime may have made the change.

        A shared container is sent its set once: a process inside may cause such changes at will.
        """
        parsed = naming.parse(drift.path)
        row = self.containers.found.get(parsed.container_id)
        if parsed.kind is not Kind.CONTAINER or row is None or row.is_intruder:
            return
        if row.id_ in self.updater.sent_ids:
            self.updater.note_external_change(row.id_, drift.found[0])
        elif drift.cause is Cause.INTRUSION:
            row.is_intruder = True

    def _update(self, one: Pass, tree: Tree) -> None:
        previous = self.containers.previous.resources(one.names)
        resources, desired = {}, one.result.desired
        for row, sent in self._to_update(one, previous):
            grows = row.path in one.result.growing
            update = resources_to_send(desired, tree, row.path, sent, grows=grows)
            if update is not None and (update.are_new or row.id_ not in previous):
                quota_us = self.cfs_quota.runtime_quota_us(row.path)
                resources[row.id_] = replace(update.resources, quota_us=quota_us)
        rows = self.containers.found.values()
        mark_own(rows, one.result.failures)
        self.updater.want(resources | own_resources(rows, tree, desired), previous)

    def _to_update(
        self, one: Pass, previous: Mapping[str, ContainerResources]
    ) -> Iterator[tuple[Row, ContainerResources | None]]:
        """The containers that may have to be updated, and what was sent for each.

        An unnamed one may be an exclusive one.

        All other containers than those that are assigned, or were updated, have the shared pool.
        """
        assert one.naming is not None
        known, lifted = self.containers, self.cfs_quota.runtime_may_lack
        intruders = {row.id_ for row in known.found.values() if row.is_intruder}
        changed = {one.naming.parse(path).container_id for path in lifted} | intruders
        ids = known.assigned | self.updater.sent_ids | previous.keys() | changed
        for id_ in sorted(ids & known.found.keys() - known.unnamed):
            row = known.found[id_]
            sent = self.updater.sent(id_) or previous.get(id_)
            if sent is None and (row.path in lifted or row.is_intruder):
                sent = NO_CHANGE
            yield row, sent
