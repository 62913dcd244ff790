"""Which containers the previous enforcer process updated in the runtime.

The runtime writes the cpuset that it was sent last at every update of a container, also after a
restart of the enforcer. An enforcer saves the assignment that it enforces on the node, and the next
one starts with that copy: the exclusive containers in it are those that were updated. When a newer
assignment takes their CPUs away, the runtime must be updated as well.
"""

from collections.abc import Collection, Mapping

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_enforcer.cgroups.tree import parent
from numapin_enforcer.runtime.container_index import Row
from numapin_enforcer.runtime.interface import ContainerResources


class PreviousUpdates:
    """What the previous enforcer sent the runtime, until this one sends something itself.

    The copy has container names and no ids. A container of one of its pods may be any of them until
    the runtime names it.
    """

    def __init__(self, enforced: NodeAssignmentSpec | None) -> None:
        """Args: `enforced` is what the previous process enforced; None if nothing."""
        self._pods: dict[str, dict[str, ContainerResources]] = {}
        for one in enforced.containers if enforced is not None else ():
            if one.exclusive:
                resources = ContainerResources(one.cpus, one.mems)
                self._pods.setdefault(one.pod_uid, {})[one.container] = resources
        self._left: dict[str, Row] | None = None
        """Those that only the previous process may have updated; None before the first tree."""

    @property
    def ids(self) -> Collection[str]:
        """The containers that only the previous process may have updated."""
        return self._left or {}

    def update(
        self,
        found: Mapping[str, Row],
        names: Mapping[str, str],
        done: Collection[str],
    ) -> None:
        """Drop the containers that ended, were never updated, or are updated by now.

        The first call decides which containers count: one that starts later was never updated.

        Args:
            found: all containers, by id.
            names: container id to container name, as far as known.
            done: ids that this process updated, or that the runtime does not list.
        """
        left = found if self._left is None else self._left
        self._left = {
            id_: row
            for id_, row in left.items()
            if id_ in found and id_ not in done and self._may_be_updated(row, names.get(id_))
        }

    def _may_be_updated(self, row: Row, name: str | None) -> bool:
        sent = self._pods.get(row.pod_uid)
        return sent is not None and (name is None or name in sent)

    def resources(self, names: Mapping[str, str]) -> dict[str, ContainerResources]:
        """What the runtime was sent for each of `ids` whose name is known."""
        left = self._left or {}
        return {
            id_: self._pods[row.pod_uid][names[id_]] for id_, row in left.items() if id_ in names
        }

    def unnamed(
        self, spec: NodeAssignmentSpec | None, names: Mapping[str, str]
    ) -> dict[str, CpuSet]:
        """Pod's cgroup to the CPUs that the runtime may write to a container in it.

        That container has no known name yet, so it cannot be updated. CPUs that `spec` assigns to
        the same container again do not count.
        """
        listed = spec.containers if spec is not None else ()
        same = {one.key: one.cpus for one in listed if one.exclusive}
        lost: dict[str, CpuSet] = {}
        unnamed = [row for id_, row in (self._left or {}).items() if id_ not in names]
        for row in unnamed:
            for name, sent in self._pods[row.pod_uid].items():
                if same.get((row.pod_uid, name)) != sent.cpus:
                    pod = parent(row.path)
                    lost[pod] = lost.get(pod, CpuSet()) | sent.cpus
        return lost
