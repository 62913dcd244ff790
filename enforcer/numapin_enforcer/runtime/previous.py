"""Which containers the runtime was told of by the enforcer that ran before this one.

The runtime repeats the set that it was told last at every update of a container, also after a
restart of the enforcer. An enforcer keeps the assignment that it enforces on the node, and the next
one starts with that copy: the containers that own CPUs in it are those that the runtime was told
of. When a newer assignment takes their CPUs away, the runtime must be told so as well.
"""

from collections.abc import Collection, Mapping

from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_enforcer.cgroups.tree import parent
from numapin_enforcer.runtime.types import ContainerResources


class PreviousUpdates:
    """What the previous enforcer told the runtime, until this one tells it something itself.

    The copy has names and no container ids. A container of one of its pods can be any of that pod's
    until the runtime names it.
    """

    def __init__(self, kept: NodeAssignmentSpec | None) -> None:
        """Args: `kept` is what the previous enforcer enforced; None if it enforced nothing."""
        self._pods: dict[str, dict[str, ContainerResources]] = {}
        for one in kept.containers if kept is not None else ():
            if one.exclusive:
                record = ContainerResources(one.cpus, one.mems)
                self._pods.setdefault(one.pod_uid, {})[one.container] = record
        self._left: dict[str, tuple[str, str]] | None = None
        """Container id to its cgroup's path and its pod's UID; None before there was a tree."""

    @property
    def ids(self) -> Collection[str]:
        """The containers that the runtime may have been told of, and not by this enforcer."""
        return self._left or {}

    def update(
        self,
        found: Mapping[str, tuple[str, str]],
        names: Mapping[str, str],
        done: Collection[str],
    ) -> None:
        """Leave out the containers that ended, were never told of, or need no more attention.

        The first call decides which containers count: one that starts later is another one.

        Args:
            found: container id to its cgroup's path and its pod's UID.
            names: container id to container name, as far as the runtime told them.
            done: ids that this enforcer told the runtime of, or that the runtime does not list.
        """
        left = found if self._left is None else self._left
        self._left = {
            id_: (path, uid)
            for id_, (path, uid) in left.items()
            if id_ in found and id_ not in done and self._may_be_told(uid, names.get(id_))
        }

    def _may_be_told(self, uid: str, name: str | None) -> bool:
        return uid in self._pods and (name is None or name in self._pods[uid])

    def records(self, names: Mapping[str, str]) -> dict[str, ContainerResources]:
        """What the runtime was told of each of `ids` whose name is known."""
        left = self._left or {}
        return {id_: self._pods[uid][names[id_]] for id_, (_, uid) in left.items() if id_ in names}

    def unnamed(
        self, spec: NodeAssignmentSpec | None, names: Mapping[str, str]
    ) -> dict[str, CpuSet]:
        """Pod's cgroup to CPUs that the runtime may give back to a container in it.

        That is a container whose name is not known yet, so the runtime cannot be told of it. CPUs
        that `spec` gives to the same container again do not count.
        """
        listed = spec.containers if spec is not None else ()
        same = {(one.pod_uid, one.container): one.cpus for one in listed if one.exclusive}
        lost: dict[str, CpuSet] = {}
        for id_, (path, uid) in (self._left or {}).items():
            for name, record in self._pods[uid].items():
                if id_ not in names and same.get((uid, name)) != record.cpus:
                    lost[parent(path)] = lost.get(parent(path), CpuSet()) | record.cpus
        return lost
