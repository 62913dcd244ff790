"""Which containers there are, and what the runtime calls those whose name is needed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from numapin_api.conditions.reasons import Obstacle
from numapin_api.schema.plain import RuntimeStatus
from numapin_enforcer.cgroups.kubepods.finder import KubepodsFinder
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.runtime.container_index import ContainerIndex, Row
from numapin_enforcer.runtime.container_names import ContainerNames
from numapin_enforcer.runtime.unlisted import unlisted_obstacles
from numapin_enforcer.runtime.updates.previous_updates import PreviousUpdates
from numapin_enforcer.runtime.updates.updater import RuntimeUpdater
from numapin_enforcer.status.obstacles import unnamed
from numapin_enforcer.status.state import State

_LONGEST_RUNTIME_TEXT: Final = 128
"""Longest name or version of a runtime, in characters."""


@dataclass(eq=False, slots=True)
class Containers:
    """The containers of the kubelet's cgroups.

    Attributes:
        pods: has the cgroups.
        names: asks the runtime.
        previous: the containers that the previous process updated in the runtime.
        updater: has the containers that this process updated.
        assigned: the ids of the pods of the spec.
        unnamed: the ids whose name is needed and not known yet.
    """

    pods: KubepodsFinder
    names: ContainerNames
    previous: PreviousUpdates
    updater: RuntimeUpdater
    assigned: frozenset[str] = field(default=frozenset(), init=False)
    unnamed: frozenset[str] = field(default=frozenset(), init=False)
    _index: ContainerIndex = field(default_factory=ContainerIndex, init=False)
    _unlisted: tuple[Obstacle, ...] = field(default=(), init=False)

    def follow(self, one: Pass) -> None:
        """Find the containers, and ask for names."""
        if not one.looks or one.naming is None:
            return
        if one.result.tree is not None:
            self._index.update(one.result.tree, one.naming)
        spec = one.looked_for
        uids = {each.pod_uid for each in spec.containers} if spec else ()
        self.assigned = frozenset(self._index.of_pods(uids))
        if one.result.tree is not None:
            self._request_names(one.names)
            self._find_unlisted(one, one.result.tree)
            if one.full_resync:
                self.names.forget_except(self.found.keys())

    @property
    def found(self) -> Mapping[str, Row]:
        """A row for each container id, or sandbox id."""
        return self._index.found

    @property
    def pod_uids(self) -> frozenset[str]:
        """UIDs of the pods that have a cgroup."""
        return self._index.pods

    @property
    def runtime(self) -> RuntimeStatus | None:
        """Which runtime runs here, its texts cut to what a status may hold; None if unknown."""
        version, most = self.names.runtime_version, _LONGEST_RUNTIME_TEXT
        return RuntimeStatus(version.name[:most], version.version[:most]) if version else None

    def state(self) -> State:
        """Which names are missing."""
        return State(
            stalled=(*self.names.obstacles(), *self._unlisted),
            working=tuple(unnamed(self.names.slow)),
            finishes_soon=self.names.patience_seconds is not None,
        )

    def _request_names(self, known: Mapping[str, str]) -> None:
        done = self.updater.sent_ids | self.names.unlisted
        self.previous.update(self.found, known, done)
        self.unnamed = self.names.need(self.assigned | set(self.previous.ids))

    def _find_unlisted(self, one: Pass, tree: Tree) -> None:
        """Which running containers of the spec's pods the runtime does not list."""
        unlisted, pods = self.names.long_unlisted & self.found.keys(), self.pods.tree
        if not unlisted or pods is None:
            self._unlisted = ()
            return
        self._unlisted = unlisted_obstacles(
            one.enforced,
            tree,
            {id_: self.found[id_] for id_ in unlisted},
            {(row.pod_uid, one.names[id_]) for id_, row in self.found.items() if id_ in one.names},
            pods.files.has_tasks,
        )
