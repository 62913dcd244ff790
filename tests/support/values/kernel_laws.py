"""What must hold after every write, and in the end: the design's words, not the planner's.

Nothing of `desire`, `plan` or `apply` is used here: who owns what is read from the spec, who may be
where from the kubelet's tree. I1: CPUs that an owner has to itself stay so until it leaves them.
I2: no set is written empty, or names what is offline or has no memory. I3: what a cgroup asks for
is inside what its parent has, so it is what it gets.
"""

from collections.abc import Mapping

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_enforcer.cgroups.tree import CgroupTree, Tree, Write, parent, related
from numapin_enforcer.status.summary import in_force
from support.fakes.kernel import KernelModel
from support.values.kernel_worlds import World


def alone(tree: Tree, path: str, unseen: frozenset[str] = frozenset()) -> CpuSet:
    """The CPUs that a cgroup has and no cgroup but itself and those around and inside it.

    `unseen` are cgroups that came since the tree was read: they begin with what is around them.
    """
    mine = tree.cgroups[path].effective_cpus
    for other in tree.cgroups.values():
        if not related(path, other.path) and other.path not in unseen:
            mine -= other.effective_cpus
    return mine


def pool_of(world: World, spec: NodeAssignmentSpec) -> CpuSet:
    """Where everybody without own CPUs runs: what is online of the pool, else what nobody owns."""
    owned = CpuSet()
    for one in spec.containers:
        owned |= one.cpus if one.exclusive else CpuSet()
    assert spec.pools is not None
    online = world.topology.online
    return spec.pools.shared & online or online - owned or online


def owners(world: World, spec: NodeAssignmentSpec) -> dict[str, CpuSet]:
    """The cgroups of containers that are to own CPUs, and which of them are online."""
    pool, online = pool_of(world, spec), world.topology.online
    return {
        world.path_of(one): one.cpus & online
        for one in spec.containers
        if one.exclusive and one.cpus & online and (one.cpus & online).isdisjoint(pool)
    }


def held_now(world: World, spec: NodeAssignmentSpec, tree: Tree) -> dict[str, CpuSet]:
    """What containers that are to own CPUs have to themselves now, whoever gave it to them."""
    found = {path: alone(tree, path) for path in owners(world, spec) if path in tree.cgroups}
    return {path: cpus for path, cpus in found.items() if cpus}


def assert_reached(world: World, spec: NodeAssignmentSpec, tree: Tree) -> None:
    """Every cgroup has what the spec says, and owners have it alone."""
    goal = _Goal(world, spec)
    for path, cgroup in tree.cgroups.items():
        goal.check(tree, path)
        if path != tree.root:
            above = tree.cgroups[parent(path)]
            assert cgroup.effective_cpus <= above.effective_cpus, path
            assert cgroup.effective_mems <= above.effective_mems, path
    owning = {path: cpus for path, cpus in owners(world, spec).items() if path in tree.cgroups}
    assert {path: alone(tree, path) for path in owning} == owning
    assert_told(world, spec, tree, owning)


def assert_told(
    world: World, spec: NodeAssignmentSpec, tree: Tree, owning: Mapping[str, CpuSet]
) -> None:
    """The kernel has what we want of it, and our own report says just that."""
    wanted = world.desired(spec, tree)
    for path, cgroup in tree.cgroups.items():
        meant = (wanted[path].cpus, wanted[path].mems)
        assert (cgroup.effective_cpus, cgroup.effective_mems) == meant, path
    assert {one.path: one.cpus for one in in_force(tree, wanted) if one.exclusive} == owning


class _Goal:
    """What each cgroup must end up with."""

    def __init__(self, world: World, spec: NodeAssignmentSpec) -> None:
        self._online, self._all_mems = world.topology.online, world.topology.mems
        self._pool, self._root = pool_of(world, spec), world.naming.root
        self._listed = {world.path_of(one): one for one in spec.containers}
        self._nesting = {pod.container_path(name) for pod in world.pods for name in pod.members}
        self._nesting |= set(world.strangers)

    def check(self, tree: Tree, path: str) -> None:
        found = tree.cgroups[path]
        if path == self._root:
            assert found.effective_mems == self._all_mems
        elif parent(path) in self._nesting or parent(parent(path)) in self._nesting:
            self._check_nested(tree, path)
        elif path in self._listed:
            assert (found.effective_cpus, found.effective_mems) == self.given(path), path
        elif any(parent(other) == path for other in tree.cgroups):
            assert found.effective_cpus == self._around(tree, path), path
            assert found.effective_mems == self._all_mems, path
        else:
            own = self._owned_below(path)
            assert found.effective_cpus == self._pool | own, path
            assert found.effective_mems == self._all_mems, path

    def given(self, path: str) -> tuple[CpuSet, MemSet]:
        one = self._listed[path]
        return one.cpus & self._online or self._pool, one.mems & self._all_mems or self._all_mems

    def _check_nested(self, tree: Tree, path: str) -> None:
        """Inside a container: part of what that has, and not nothing."""
        found, above = tree.cgroups[path], tree.cgroups[parent(path)]
        assert CpuSet() != found.effective_cpus <= above.effective_cpus, path
        assert MemSet() != found.effective_mems <= above.effective_mems, path

    def _around(self, tree: Tree, path: str) -> CpuSet:
        """A class or pod: the pool, and what is owned below, there already or yet to come."""
        cpus = self._pool | self._owned_below(path)
        for other in tree.cgroups:
            if other.startswith(f"{path}/"):
                cpus |= tree.cgroups[other].effective_cpus
        return cpus

    def _owned_below(self, path: str) -> CpuSet:
        """What containers of a pod are to have; a class holds it once the pod is there."""
        cpus = CpuSet()
        for other, one in self._listed.items():
            if parent(other) == path:
                cpus |= one.cpus & self._online
        return cpus


class Watch:
    """Holds I1, I2 and I3 of the design after every single write to a model or a kernel."""

    def __init__(self, world: World, cgroups: CgroupTree, held: dict[str, CpuSet]) -> None:
        self._world, self._cgroups, self.held = world, cgroups, held
        self.unseen: set[str] = set()
        if isinstance(cgroups, KernelModel):
            cgroups.before_write, cgroups.after_write = self.before, self.after

    def read(self) -> Tree:
        return self._cgroups.read()

    def write(self, write: Write) -> None:
        """What `apply` calls where the kernel is real."""
        self.before(write)
        self._cgroups.write(write)
        self.after(write)

    def before(self, write: Write) -> None:
        """I2: nothing empty, nothing offline, no node without memory."""
        topology = self._world.topology
        if isinstance(write.value, CpuSet):
            assert write.value, write
            assert write.value <= topology.online, write
        if isinstance(write.value, MemSet):
            assert write.value, write
            assert write.value <= topology.mems, write

    def after(self, write: Write) -> None:
        """I1: what was owned stays with its owner until it left; I3: asked is effective."""
        tree = self._cgroups.read()
        for path, cpus in self.held.items():
            if path in tree.cgroups:
                still = cpus & tree.cgroups[path].effective_cpus
                both = still - alone(tree, path, frozenset(self.unseen))
                assert not both, f"{path} shares {both} after {write}"
                self.held[path] = still
        found = tree.cgroups[write.path]
        if isinstance(write.value, CpuSet):
            assert found.effective_cpus == write.value, write
        if isinstance(write.value, MemSet):
            assert found.effective_mems == write.value, write
