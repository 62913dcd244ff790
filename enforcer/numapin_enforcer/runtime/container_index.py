"""The containers of the newest tree, looked up by id and by pod. Does no I/O."""

from collections.abc import Iterable, Mapping

from numapin_enforcer.cgroups.naming import CgroupNaming, Kind
from numapin_enforcer.cgroups.tree import Tree


class ContainerIndex:
    """Every container and sandbox; kept from tree to tree, since few come and go.

    Attributes:
        found: container id (or sandbox id) to its cgroup's path and its pod's UID.
    """

    def __init__(self, naming: CgroupNaming) -> None:
        """Args: `naming` is how to read the paths of every tree."""
        self.naming = naming
        self.found: dict[str, tuple[str, str]] = {}
        self._of_pod: dict[str, set[str]] = {}
        self._places: dict[str, dict[str, str]] = {}
        """Container id to path and pod; anyone who may make cgroups can use an id twice."""
        self._shape: Mapping[str, str] = {}

    def update(self, tree: Tree) -> None:
        """Take over the cgroups of `tree`."""
        before, self._shape = self._shape, tree.parents
        if before is self._shape:
            return
        for path in before.keys() - self._shape.keys():
            self._remove(path)
        for path in self._shape.keys() - before.keys():
            self._add(path)

    def of_pods(self, uids: Iterable[str]) -> set[str]:
        """The ids of all containers and sandboxes of these pods."""
        return {id_ for uid in uids for id_ in self._of_pod.get(uid, ())}

    def _add(self, path: str) -> None:
        parsed = self.naming.parse(path)
        if parsed.kind is not Kind.CONTAINER:
            return
        id_, uid = parsed.container_id, parsed.pod_uid
        self._places.setdefault(id_, {})[path] = uid
        self.found[id_] = (path, uid)
        self._of_pod.setdefault(uid, set()).add(id_)

    def _remove(self, path: str) -> None:
        parsed = self.naming.parse(path)
        if parsed.kind is not Kind.CONTAINER:
            return
        id_, uid = parsed.container_id, parsed.pod_uid
        places = self._places[id_]
        del places[path]
        if uid not in places.values():
            self._of_pod[uid].discard(id_)
            if not self._of_pod[uid]:
                del self._of_pod[uid]
        if places:
            self.found[id_] = next(reversed(places.items()))
        else:
            del self._places[id_], self.found[id_]
