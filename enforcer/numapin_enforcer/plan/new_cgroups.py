"""Keeps new cgroups off exclusive CPUs until a pass has planned for them. Does no I/O."""

from collections.abc import Iterable, Iterator, Mapping

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.naming import CgroupNaming, Kind
from numapin_enforcer.cgroups.tree import Cgroup, Tree, parent
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.desired import Rules


class NewCgroupFence:
    """The first writes to new cgroups, each found without a plan for the whole tree.

    A new cgroup starts with its parent's CPUs, exclusive ones included. It gets what a plan would
    give it at once: the shared pool, and a pod the CPUs of its own containers as well. That is safe
    after any pass in which every cgroup had its desired set, for as long as no other spec is being
    put in force: then nobody has the pool's CPUs, or the pod's, exclusively.

    Left to the plan are: containers that the spec lists and the runtime has named, a container that
    can only be an exclusive one, cgroups inside containers, and NUMA nodes.
    """

    def __init__(self, rules: Rules, naming: CgroupNaming, tree: Tree) -> None:
        """Args: `rules` are in force in every cgroup of `tree`, which was read back."""
        self._rules, self._naming, self._tree = rules, naming, tree
        self.written: dict[str, Write] = {}
        """The write to each new cgroup that needed one."""

    def writes(self, paths: Iterable[str], names: Mapping[str, str]) -> Iterator[Write]:
        """What to write to new cgroups.

        Args:
            paths: parents first; those that are not new are left out.
            names: as in `desire`.
        """
        for path in paths:
            above = self._tree.cgroups.get(parent(path))
            if path in self._tree.cgroups or above is None:
                continue
            cpus = self._first_cpus(path, above, names)
            if cpus is not None:
                leaves = above.effective_cpus - cpus
                self.written[path] = Write(path, cpus, Step.NARROW, leaves=leaves)
                yield self.written[path]
            self._add(path, above, above.effective_cpus if cpus is None else cpus)

    def _first_cpus(self, path: str, above: Cgroup, names: Mapping[str, str]) -> CpuSet | None:
        """The CPUs to write; None if the cgroup needs no write, or the plan must decide."""
        wanted = self._wanted(path, above, names)
        if wanted is None or wanted.container is not None:
            return None
        cpus = wanted.cpus & above.effective_cpus
        return cpus if cpus and not above.effective_cpus <= cpus else None

    def _wanted(self, path: str, above: Cgroup, names: Mapping[str, str]) -> Desired | None:
        kind = self._naming.parse(path).kind
        if kind is Kind.POD:
            return self._rules.pod(self._naming.parse(path).pod_uid)
        if kind is not Kind.CONTAINER:
            return self._rules.shared if kind in {Kind.QOS, Kind.OTHER} else None
        pod = parent(path)
        tree = self._tree.with_changes({path: _new(path, above, CpuSet())}, self._tree.unread)
        wanted = self._rules.desired(tree, names, (pod, *tree.children[pod]))[path]
        return wanted if wanted.cpus <= self._rules.shared.cpus else None

    def _add(self, path: str, above: Cgroup, cpus: CpuSet) -> None:
        """From now on the cgroup is known, so that its children can be fenced as well."""
        found = {path: _new(path, above, cpus)}
        self._tree = self._tree.with_changes(found, self._tree.unread)


def _new(path: str, above: Cgroup, cpus: CpuSet) -> Cgroup:
    return Cgroup(path, cpus, MemSet(), cpus, above.effective_mems)
