"""Keeps new cgroups off exclusive CPUs until a pass has planned for them. Does no I/O."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.naming import CgroupNaming, Kind
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version, parent
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.desired import Rules


@dataclass(frozen=True, slots=True)
class Scope:
    """What may be fenced before a plan.

    Attributes:
        in_pass: a pass is making its writes: what it has planned for is left to it.
        pods_only: nothing but pods: not every cgroup had its CPUs after the last pass, or nobody
            knows which container a cgroup is.
        as_created: only what nothing has set since it was created.
        taken: CPUs that exclusive containers have, each with its pod's UID. Another pod is not put
            on them, although the spec gives them to it: they are still to be moved off.
    """

    in_pass: bool = False
    pods_only: bool = False
    as_created: bool = False
    taken: tuple[tuple[str, CpuSet], ...] = ()


EVERYTHING: Final = Scope()


def taken_cpus(
    tree: Tree, desired: Mapping[str, Desired], naming: CgroupNaming
) -> Iterator[tuple[str, CpuSet]]:
    """The CPUs that each exclusive container shares with no container that is none."""
    shared, exclusive = CpuSet(), dict[str, CpuSet]()
    for path, one in desired.items():
        parsed = naming.parse(path)
        if parsed.kind is Kind.CONTAINER:
            cpus = tree.cgroups[path].effective_cpus
            if one.exclusive:
                exclusive[parsed.pod_uid] = exclusive.get(parsed.pod_uid, CpuSet()) | cpus
            else:
                shared |= cpus
    return ((uid, cpus - shared) for uid, cpus in exclusive.items())


class NewCgroupFence:
    """The first writes to new cgroups, each found without a plan for the whole tree.

    A new cgroup starts with its parent's CPUs, exclusive ones included. It gets what a plan would
    give it at once: the shared pool, and a pod the CPUs of its own containers as well. That is safe
    after any pass in which every cgroup had its desired set, until the first write for another
    spec: then nobody has the pool's CPUs, or the pod's, exclusively. After any other pass only pods
    are fenced, without the CPUs that are `taken`: a cgroup that cannot be set must not keep new
    pods on exclusive CPUs.

    Left to the plan are: containers that the spec lists and the runtime has named, a container that
    can only be an exclusive one, cgroups inside containers, and NUMA nodes.
    """

    def __init__(
        self, rules: Rules, naming: CgroupNaming, tree: Tree, scope: Scope = EVERYTHING
    ) -> None:
        """Args: `rules` are in force in `tree`, which was read back, as far as `scope` says."""
        self._rules, self._naming, self._tree, self.scope = rules, naming, tree, scope
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

    def write_again(self, path: str) -> Write | None:
        """The write to a pod that was fenced or planned for and has no container yet.

        Its runtime may have set it since. None if a pass decides.
        """
        if path in self.written or path not in self._tree.cgroups:
            return self.written.get(path)
        is_pod = self._naming.parse(path).kind is Kind.POD
        if self.scope.in_pass or not is_pod or self._tree.children[path]:
            return None
        above = self._tree.cgroups[parent(path)]
        cpus = self._first_cpus(path, above, {})
        if cpus is None:
            return None
        return Write(path, cpus, Step.NARROW, leaves=above.effective_cpus - cpus)

    def is_as_created(self, found: Cgroup) -> bool:
        """Whether nothing has set a new cgroup: on v1 a runtime gives it what its parent has."""
        above = self._tree.cgroups.get(parent(found.path))
        is_copy = self._tree.version is Version.V1 and above is not None
        return not found.cpus or (is_copy and above is not None and found.cpus == above.cpus)

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
            return self._pod(self._naming.parse(path).pod_uid)
        if self.scope.pods_only:
            return None
        if kind is not Kind.CONTAINER:
            return self._rules.shared if kind in {Kind.QOS, Kind.OTHER} else None
        pod = parent(path)
        tree = self._tree.with_changes({path: _new(path, above, CpuSet())}, self._tree.unread)
        wanted = self._rules.desired(tree, names, (pod, *tree.children[pod]))[path]
        return wanted if wanted.cpus <= self._rules.shared.cpus else None

    def _pod(self, uid: str) -> Desired:
        wanted = self._rules.pod(uid)
        taken = CpuSet.union(cpus for owner, cpus in self.scope.taken if owner != uid)
        return replace(wanted, cpus=wanted.cpus - taken) if wanted.cpus & taken else wanted

    def _add(self, path: str, above: Cgroup, cpus: CpuSet) -> None:
        """From now on the cgroup is known, so that its children can be fenced as well."""
        found = {path: _new(path, above, cpus)}
        self._tree = self._tree.with_changes(found, self._tree.unread)


def _new(path: str, above: Cgroup, cpus: CpuSet) -> Cgroup:
    return Cgroup(path, cpus, MemSet(), cpus, above.effective_mems)
