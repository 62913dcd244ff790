"""The desired sets, computed again only for the pods that changed. Does no I/O."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_enforcer.cgroups.naming import CgroupNaming, Qos
from numapin_enforcer.cgroups.tree import Tree, differing, parent
from numapin_enforcer.plan.containment import (
    NONE_BOUND,
    Desired,
    FoundMems,
    contain,
    kubepods,
    widened,
)
from numapin_enforcer.plan.desired import Rules


@dataclass(frozen=True, slots=True)
class _Answer:
    """The desired sets, and what they were computed from."""

    spec: NodeAssignmentSpec
    topology: Topology
    names: Mapping[str, str]
    tree: Tree
    rules: Rules
    desired: Mapping[str, Desired]


class DesiredCache:
    """Answers as `desire` does; what has not changed is the same object as in the last answer."""

    def __init__(self, naming: CgroupNaming) -> None:
        """Args: `naming` is how to read the paths of every tree."""
        self.naming = naming
        self._classes = tuple(naming.qos_path(qos) for qos in (Qos.BURSTABLE, Qos.BEST_EFFORT))
        self._last: _Answer | None = None

    @property
    def rules(self) -> Rules | None:
        """The rules of the last answer; None before the first."""
        return self._last.rules if self._last is not None else None

    def desired(
        self,
        spec: NodeAssignmentSpec,
        tree: Tree,
        names: Mapping[str, str],
        topology: Topology,
        found_mems: FoundMems = NONE_BOUND,
    ) -> Mapping[str, Desired]:
        """The sets that every cgroup of `tree` must have; the arguments are as in `desire`."""
        last = self._last
        desired: Mapping[str, Desired]
        given = (spec, topology, found_mems)
        if last is None or (last.spec, last.topology, last.rules.found_mems) != given:
            rules, pods = Rules(spec, self.naming, topology, found_mems), None
        else:
            rules, pods = last.rules, self._changed_pods(last, tree, names)
        if last is None or pods is None:
            desired = contain(tree, rules.desired(tree, names, tree.parents), topology)
        else:
            desired = self._renewed(last, tree, names, pods)
        self._last = _Answer(spec, topology, names, tree, rules, desired)
        return desired

    def _changed_pods(
        self, last: _Answer, tree: Tree, names: Mapping[str, str]
    ) -> frozenset[str] | None:
        """Pods with a changed cgroup or name, gone ones too; None if other cgroups changed too."""
        if (last.tree.root, last.tree.version) != (tree.root, tree.version):
            return None
        before, now = last.tree.cgroups, tree.cgroups
        changed = differing(now, before)
        if tree.parents is not last.tree.parents:
            changed += before.keys() - now.keys()
        pods = {self._pod(path) for path in changed if path != tree.root}
        if names is not last.names:
            pods |= {
                self._pod(path)
                for path in now
                if (id_ := self.naming.parse(path).container_id)
                and names.get(id_) != last.names.get(id_)
            }
        return None if "" in pods else frozenset(pods)

    def _pod(self, path: str) -> str:
        """The cgroup of the pod that a cgroup belongs to; empty if it belongs to none."""
        found = ""
        while self.naming.parse(path).pod_uid:
            found, path = path, parent(path)
        return found

    def _renewed(
        self, last: _Answer, tree: Tree, names: Mapping[str, str], pods: frozenset[str]
    ) -> Mapping[str, Desired]:
        """The last answer with the cgroups of these pods, and their ancestors, computed again."""
        if last.tree is tree and not pods:
            return last.desired
        desired = dict(last.desired)
        if tree.parents is not last.tree.parents:
            for path in last.desired.keys() - tree.cgroups.keys():
                del desired[path]
        paths = [path for pod in pods for path in _subtree(tree, pod)]
        raw = last.rules.desired(tree, names, paths)
        fresh: dict[str, Desired] = {}
        for path in reversed(paths):
            fresh[path] = widened(raw[path], (fresh[one] for one in tree.children[path]))
        for path in paths:  # parents first
            _put(desired, path, fresh[path])
        root = tree.root
        if tree.cgroups[root] is last.tree.cgroups[root] and all(
            desired.get(pod) is last.desired.get(pod) for pod in pods
        ):
            return desired
        top = tree.children[root]
        classes = [path for path in self._classes if path in tree.cgroups]
        for path, one in last.rules.desired(tree, names, classes).items():
            children = (desired[child] for child in tree.children[path])
            _put(desired, path, widened(one, children))
        below = (desired[path] for path in top)
        _put(desired, root, kubepods(tree, below, last.topology))
        return desired


def _subtree(tree: Tree, path: str) -> Iterator[str]:
    """A cgroup and its descendants, parents first; nothing if it is gone."""
    if path in tree.cgroups:
        yield path
        for child in tree.children[path]:
            yield from _subtree(tree, child)


def _put(desired: dict[str, Desired], path: str, one: Desired) -> None:
    """Replace an entry, unless it says the same."""
    if desired.get(path) != one:
        desired[path] = one
