"""Invariants after every write (`numapin_campaigns.laws.writes`) and at the end of a pass.

`desire`, `plan` and `apply` are not used here: exclusive CPUs come from the spec, permitted CPUs
from the kubelet's tree.
"""

from collections.abc import Mapping

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_campaigns.histories.kernel.model import KernelModel
from numapin_campaigns.laws.cgroup_tree import alone
from numapin_campaigns.laws.writes import Writes
from numapin_enforcer.cgroups.tree import CgroupTree, Tree, contains, parent
from numapin_enforcer.cgroups.write import Write
from numapin_enforcer.plan.cpu_index import CpuIndex
from numapin_enforcer.status.in_force.summary import in_force
from support.values.kernel.worlds import World


def has_now(tree: Tree) -> dict[str, CpuSet]:
    """The effective CPUs of each cgroup."""
    return {path: one.effective_cpus for path, one in tree.cgroups.items()}


def pool_of(world: World, spec: NodeAssignmentSpec) -> CpuSet:
    """The online CPUs of the shared pool; if none, the online CPUs that are not exclusive."""
    exclusive = CpuSet.union(one.cpus for one in spec.containers if one.exclusive)
    assert spec.pools is not None
    online = world.topology.online
    return spec.pools.shared & online or online - exclusive or online


def exclusive_containers(world: World, spec: NodeAssignmentSpec) -> dict[str, CpuSet]:
    """The cgroups of exclusive containers, with their online CPUs."""
    pool, online = pool_of(world, spec), world.topology.online
    return {
        world.path_of(one): one.cpus & online
        for one in spec.containers
        if one.exclusive and one.cpus & online and (one.cpus & online).isdisjoint(pool)
    }


def held_now(world: World, spec: NodeAssignmentSpec, tree: Tree) -> dict[str, CpuSet]:
    """The CPUs that exclusive containers have to themselves now, for whatever reason."""
    has = has_now(tree)
    found = {path: alone(path, has) for path in exclusive_containers(world, spec) if path in has}
    return {path: cpus for path, cpus in found.items() if cpus}


def assert_reached(world: World, spec: NodeAssignmentSpec, tree: Tree) -> None:
    """Every cgroup has what the spec says, and exclusive containers have their CPUs alone."""
    goal = _Goal(world, spec)
    for path, cgroup in tree.cgroups.items():
        goal.check(tree, path)
        if path != tree.root:
            above = tree.cgroups[parent(path)]
            assert cgroup.effective_cpus <= above.effective_cpus, path
            assert cgroup.effective_mems <= above.effective_mems, path
    exclusive = {
        path: cpus
        for path, cpus in exclusive_containers(world, spec).items()
        if path in tree.cgroups
    }
    has = has_now(tree)
    assert {path: alone(path, has) for path in exclusive} == exclusive
    assert_reported(world, spec, tree, exclusive)


def assert_reported(
    world: World, spec: NodeAssignmentSpec, tree: Tree, exclusive: Mapping[str, CpuSet]
) -> None:
    """The kernel has the desired sets, and the status reports the same."""
    wanted = world.desired(spec, tree)
    for path, cgroup in tree.cgroups.items():
        expected = (wanted[path].cpus, wanted[path].mems)
        assert (cgroup.effective_cpus, cgroup.effective_mems) == expected, path
    assert {
        one.path: one.cpus for one in in_force(CpuIndex(tree, wanted)) if one.exclusive
    } == exclusive


def assert_mems_stayed(world: World, spec: NodeAssignmentSpec, before: Tree, after: Tree) -> None:
    """Only containers that the spec binds lose NUMA nodes; only their ancestors gain any."""
    bound = {world.path_of(one) for one in spec.containers if one.mems & world.topology.mems}
    for path, one in before.cgroups.items():
        if any(contains(container, path) for container in bound) or not one.effective_mems:
            continue
        has = after.cgroups[path].effective_mems
        is_ancestor = any(contains(path, container) for container in bound)
        assert one.effective_mems <= has if is_ancestor else one.effective_mems == has, path


class _Goal:
    """The sets that each cgroup must have at the end."""

    def __init__(self, world: World, spec: NodeAssignmentSpec) -> None:
        self._online, self._all_mems = world.topology.online, world.topology.mems
        self._pool, self._root = pool_of(world, spec), world.naming.root
        self._listed = {world.path_of(one): one for one in spec.containers}
        self._nesting = {pod.container_path(name) for pod in world.pods for name in pod.members}
        self._nesting |= set(world.strangers)

    def check(self, tree: Tree, path: str) -> None:
        found = tree.cgroups[path]
        assert found.effective_mems, path
        if path == self._root:
            return
        if parent(path) in self._nesting or parent(parent(path)) in self._nesting:
            self._check_nested(tree, path)
        elif path in self._listed:
            cpus, mems = self.given(path)
            assert found.effective_cpus == cpus, path
            assert not mems or found.effective_mems == mems, path
        elif any(parent(other) == path for other in tree.cgroups):
            assert found.effective_cpus == self._around(tree, path), path
        else:
            own = self._exclusive_below(path)
            awaited = self._awaited(tree, path)
            assert found.effective_cpus in (self._pool | own, *awaited), path

    def _awaited(self, tree: Tree, path: str) -> list[CpuSet]:
        """What a cgroup may keep that no name is known of: it may be a container without a cgroup.

        The CPUs are reserved for that one then, and given to nobody else.
        """
        return [
            self.given(other)[0]
            for other, one in self._listed.items()
            if one.exclusive and other not in tree.cgroups and parent(other) == parent(path)
        ]

    def given(self, path: str) -> tuple[CpuSet, MemSet]:
        """The CPUs of a listed container, and the NUMA nodes it is bound to, if it is bound."""
        one = self._listed[path]
        return one.cpus & self._online or self._pool, one.mems & self._all_mems

    def _check_nested(self, tree: Tree, path: str) -> None:
        """A cgroup inside a container has a part of the container's sets, and not an empty one."""
        found, above = tree.cgroups[path], tree.cgroups[parent(path)]
        assert CpuSet() != found.effective_cpus <= above.effective_cpus, path
        assert MemSet() != found.effective_mems <= above.effective_mems, path

    def _around(self, tree: Tree, path: str) -> CpuSet:
        """A class or pod: the pool, and the exclusive CPUs below it, also of future cgroups."""
        cpus = self._pool | self._exclusive_below(path)
        for other in tree.cgroups:
            if other.startswith(f"{path}/"):
                cpus |= tree.cgroups[other].effective_cpus
        return cpus

    def _exclusive_below(self, path: str) -> CpuSet:
        """The exclusive CPUs of a pod's containers; a class has them once the pod exists."""
        cpus = CpuSet()
        for other, one in self._listed.items():
            if parent(other) == path:
                cpus |= one.cpus & self._online
        return cpus


class Watch(Writes):
    """Asserts I1, I2 and I3 after every single write to a model or a kernel.

    `unseen` are cgroups created since the tree was read: they start with the sets of the parent.
    """

    def __init__(self, world: World, cgroups: CgroupTree, held: dict[str, CpuSet]) -> None:
        super().__init__(cgroups, world.topology)
        self._cgroups, self.held = cgroups, held
        self.unseen: set[str] = set()
        if isinstance(cgroups, KernelModel):
            cgroups.before_write, cgroups.after_write = self.before, self.after

    def counts(self, owner: str, other: str, cpu: int) -> bool:
        del owner, cpu
        return other not in self.unseen

    def read(self) -> Tree:
        return self._cgroups.read()

    def read_effective_cpus(self, path: str) -> CpuSet:
        return self._cgroups.read_effective_cpus(path)

    def write(self, write: Write) -> None:
        """Called by `apply` if the kernel is real."""
        self.before(write)
        self._cgroups.write(write)
        self.after(write)

    def after(self, write: Write) -> None:
        super().after(write)
        self.check_effect(write, self.read())
