"""The containers of the newest tree, looked up by id and by pod. Does no I/O."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from numapin_enforcer.cgroups.naming import CgroupNaming, Kind
from numapin_enforcer.cgroups.tree import Tree


@dataclass(eq=False, slots=True)
class Row:
    """A container or sandbox, and what is remembered of it while it has a cgroup.

    Attributes:
        id_: its id.
        path: its cgroup.
        pod_uid: the UID of its pod.
        is_intruder: it has the shared pool and was found on exclusive CPUs: the runtime may
            remember a set for it, from a kubelet that had the static policy before.
        is_own: the kernel refused to set its CPUs; see `own_container`.
    """

    id_: str
    path: str
    pod_uid: str
    is_intruder: bool = False
    is_own: bool = False


class ContainerIndex:
    """Every container and sandbox; kept from tree to tree, since few come and go.

    Attributes:
        found: a row for each container id (or sandbox id); it is dropped with its last cgroup.
        pods: UIDs of the pods with a cgroup; replaced, never changed in place.
    """

    def __init__(self) -> None:
        self.found: dict[str, Row] = {}
        self.pods: frozenset[str] = frozenset()
        self._of_pod: dict[str, set[str]] = {}
        self._pod_paths: dict[str, str] = {}
        """The cgroup of each pod to its UID."""
        self._places: dict[str, dict[str, str]] = {}
        """Container id to path and pod; anyone who may make cgroups can use an id twice."""
        self._shape: Mapping[str, str] = {}
        self._naming: CgroupNaming | None = None

    def update(self, tree: Tree, naming: CgroupNaming) -> None:
        """Take over the cgroups of `tree`, whose paths `naming` reads."""
        before, now = self._shape, tree.parents
        if before is now and self._naming is naming:
            return
        gone, come = before.keys() - now.keys(), now.keys() - before.keys()
        if self._naming is not None and self._naming is not naming:
            gone, come = set(before), set(now)
        touched = self._removed(gone, self._naming or naming) | self._added(come, naming)
        self._update_pods(gone, come, naming)
        self._shape, self._naming = now, naming
        for id_ in touched:
            self._update_row(id_)

    def of_pods(self, uids: Iterable[str]) -> set[str]:
        """The ids of all containers and sandboxes of these pods."""
        return {id_ for uid in uids for id_ in self._of_pod.get(uid, ())}

    def _update_pods(self, gone: Iterable[str], come: Iterable[str], naming: CgroupNaming) -> None:
        """Drop the pods among the cgroups that are gone, and add those among the new ones."""
        left = [path for path in gone if path in self._pod_paths]
        new = {path: one.pod_uid for path in come if (one := naming.parse(path)).kind is Kind.POD}
        if left or new:
            kept = {path: uid for path, uid in self._pod_paths.items() if path not in left}
            self._pod_paths = kept | new
            self.pods = frozenset(self._pod_paths.values())

    def _added(self, paths: Iterable[str], naming: CgroupNaming) -> set[str]:
        """Add the containers among these cgroups; returns their ids."""
        touched = set()
        for path, id_, uid in _containers(paths, naming):
            self._places.setdefault(id_, {})[path] = uid
            self._of_pod.setdefault(uid, set()).add(id_)
            touched.add(id_)
        return touched

    def _removed(self, paths: Iterable[str], naming: CgroupNaming) -> set[str]:
        """Remove the containers among these cgroups; returns their ids."""
        touched = set()
        for path, id_, uid in _containers(paths, naming):
            places = self._places[id_]
            del places[path]
            if uid not in places.values():
                self._of_pod[uid].discard(id_)
                if not self._of_pod[uid]:
                    del self._of_pod[uid]
            touched.add(id_)
        return touched

    def _update_row(self, id_: str) -> None:
        """Add or drop a container's row, or have it name the newest of its cgroups."""
        if not self._places[id_]:
            del self._places[id_], self.found[id_]
            return
        path, uid = next(reversed(self._places[id_].items()))
        row = self.found.setdefault(id_, Row(id_, path, uid))
        row.path, row.pod_uid = path, uid


def _containers(paths: Iterable[str], naming: CgroupNaming) -> Iterator[tuple[str, str, str]]:
    """The containers among cgroups: path, container id and pod's UID."""
    for path in paths:
        parsed = naming.parse(path)
        if parsed.kind is Kind.CONTAINER:
            yield path, parsed.container_id, parsed.pod_uid
