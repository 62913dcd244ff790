"""Hypothesis strategies: machines, trees of cgroups, specs; and what must always hold of them."""

from dataclasses import dataclass

from hypothesis import strategies as st
from kernel_model import Group, KernelModel

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_enforcer.cgroups import Cgroup, CgroupTree, Tree, Version, Write, parent
from numapin_enforcer.desired import Desired, desire
from numapin_enforcer.inforce import in_force, mismatches
from numapin_enforcer.layout import Driver, Layout, Qos

LAYOUT = Layout(Driver.CGROUPFS)


@dataclass(frozen=True)
class Pod:
    """A pod of the world: `members` are its containers, (name, has a nested cgroup) each."""

    uid: str
    qos: Qos
    members: tuple[tuple[str, bool], ...]
    stranger: bool
    layout: Layout = LAYOUT

    def path(self) -> str:
        return self.layout.pod_path(self.qos, self.uid)

    def container_id(self, name: str) -> str:
        return f"{self.uid[-1]}{name[-1]}".replace("p", "0").rjust(64, "0")

    def container_path(self, name: str) -> str:
        return f"{self.path()}/{self.container_id(name)}"


@dataclass(frozen=True)
class World:
    """A machine and the pods on it."""

    version: Version
    topology: Topology
    possible: CpuSet
    pods: tuple[Pod, ...]
    layout: Layout = LAYOUT

    def names(self) -> dict[str, str]:
        """What the runtime lists: every container, no sandbox."""
        return {pod.container_id(name): name for pod in self.pods for name, _ in pod.members}

    def containers(self) -> list[tuple[Pod, str]]:
        return [(pod, name) for pod in self.pods for name, _ in pod.members]

    def desired(self, spec: NodeAssignmentSpec, tree: Tree) -> dict[str, Desired]:
        return desire(spec, tree, self.layout, self.names(), self.topology)

    def model(self) -> KernelModel:
        """The empty tree of this machine, with the cgroups made but (on v1) all newborn."""
        model = KernelModel(self.version, self.possible, self.topology.mems, self.layout.root)
        model.set_online(self.topology.online)
        for path in self.paths():
            model.make(path)
        return model

    def paths(self) -> list[str]:
        found = [self.layout.qos_path(Qos.BURSTABLE), self.layout.qos_path(Qos.BEST_EFFORT)]
        for pod in self.pods:
            found += [pod.path(), pod.container_path("sandbox-f")]
            for name, nested in pod.members:
                path = pod.container_path(name)
                found += [path, f"{path}/inner", f"{path}/inner/most"] if nested else [path]
            found += [f"{pod.path()}/stranger"] if pod.stranger else []
        return found


@st.composite
def worlds_on(draw: st.DrawFn, version: Version, topology: Topology, layout: Layout) -> World:
    """Pods on a given machine whose every CPU may come online."""
    pods = tuple(draw(_pods(f"pod-{index}", layout)) for index in range(draw(st.integers(1, 3))))
    return World(version, topology, topology.online | topology.offline, pods, layout)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    count = draw(st.integers(2, 8), label="cpus")
    mems = draw(st.integers(1, 3), label="numa nodes")
    offline = CpuSet(draw(st.sets(st.integers(1, count - 1), max_size=count // 3)))
    online = CpuSet(range(count)) - offline
    topology = Topology(
        tuple(Cpu(cpu, cpu, 0, 0, cpu % mems) for cpu in online),
        tuple(NumaNode(node, 2**30) for node in range(mems)),
        offline,
    )
    return draw(worlds_on(draw(st.sampled_from(Version)), topology, LAYOUT))


@st.composite
def _pods(draw: st.DrawFn, uid: str, layout: Layout) -> Pod:
    members = tuple(
        (f"container-{letter}", draw(st.booleans()))
        for letter in "abc"[: draw(st.integers(0, 3), label="containers")]
    )
    return Pod(uid, draw(st.sampled_from(Qos)), members, draw(st.booleans()), layout)


@st.composite
def specs(draw: st.DrawFn, world: World) -> NodeAssignmentSpec:
    """A valid spec: some containers own CPUs, some have memory of their own, the rest share."""
    order = draw(st.permutations(sorted(world.topology.online)))
    owned = draw(st.integers(0, len(order) - 1), label="owned")
    shared, free = CpuSet(order[owned:]), list(order[:owned])
    listed = []
    for pod, name in world.containers():
        count = draw(st.integers(0, len(free)))
        cpus, free = CpuSet(free[:count]), free[count:]
        nodes = MemSet(draw(st.sets(st.sampled_from(sorted(world.topology.mems)))))
        if cpus or nodes:
            listed.append(
                ContainerAssignment(
                    pod_uid=pod.uid,
                    namespace="default",
                    pod=pod.uid,
                    container=name,
                    cpus=cpus,
                    mems=nodes,
                    exclusive=bool(cpus),
                )
            )
    pools = Pools(reserved=CpuSet(list(shared)[:1]), shared=shared | CpuSet(free))
    return NodeAssignmentSpec(pools=pools, containers=tuple(listed))


@st.composite
def scattered(draw: st.DrawFn, world: World) -> KernelModel:
    """The world's tree with any sets that the kernel could have: drift of every kind."""
    model = world.model()
    if world.version is Version.V2 and draw(st.booleans(), label="kubepods asks"):
        model.groups[world.layout.root].cpus = world.possible
    for path in world.paths():
        leaf = not any(parent(other) == path for other in world.paths())
        tasks = draw(st.integers(0, 1)) if leaf else 0
        above = model.groups[parent(path)]
        if world.version is Version.V1:
            cpus, mems = CpuSet(draw(_some(above.cpus))), MemSet(draw(_some(above.mems)))
            model.groups[path] = Group(cpus, mems, tasks if cpus and mems else 0)
        else:
            cpus = CpuSet(draw(_some(world.possible)))
            model.groups[path] = Group(cpus, MemSet(draw(_some(world.topology.mems))), tasks)
    return model


def _some(ids: CpuSet | MemSet) -> st.SearchStrategy[set[int]]:
    return st.sets(st.sampled_from(sorted(ids))) if ids else st.just(set())


def related(one: str, other: str) -> bool:
    """Whether one cgroup is the other, or holds it."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def alone(tree: Tree, path: str) -> CpuSet:
    """The CPUs that a cgroup has and no cgroup but itself and those around and inside it."""
    mine = tree.cgroups[path].effective_cpus
    for other in tree.cgroups.values():
        if not related(path, other.path):
            mine -= other.effective_cpus
    return mine


def held_now(tree: Tree, wanted: dict[str, Desired]) -> dict[str, CpuSet]:
    """What containers that are to own CPUs have to themselves now, whoever gave it to them."""
    found = {path: alone(tree, path) for path in owners(wanted) if path in tree.cgroups}
    return {path: cpus for path, cpus in found.items() if cpus}


def assert_reached(tree: Tree, wanted: dict[str, Desired]) -> None:
    """The kernel has what is wanted, owners have it alone, and our own report says just that."""
    for path, cgroup in tree.cgroups.items():
        assert cgroup.effective_cpus == wanted[path].cpus, path
        assert cgroup.effective_mems == wanted[path].mems, path
    owning = {path: wanted[path].cpus for path in owners(wanted) if path in tree.cgroups}
    assert {path: alone(tree, path) for path in owning} == owning
    assert mismatches(tree, wanted) == ()
    assert {one.path: one.cpus for one in in_force(tree, wanted) if one.exclusive} == owning


def owners(wanted: dict[str, Desired]) -> list[str]:
    """The containers that are to own CPUs, without what is nested in them."""
    return [
        path
        for path, one in wanted.items()
        if one.owner and wanted[parent(path)].owner != one.owner
    ]


class Watch:
    """Holds I1, I2 and I3 of the design after every single write to a model or a kernel."""

    def __init__(self, world: World, cgroups: CgroupTree, held: dict[str, CpuSet]) -> None:
        self._world, self._cgroups, self.held = world, cgroups, held
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
                assert still <= alone(tree, path), f"{path} lost {still} after {write}"
                self.held[path] = still
        self._contained(tree, write)

    @staticmethod
    def _contained(tree: Tree, write: Write) -> None:
        found: Cgroup = tree.cgroups[write.path]
        if isinstance(write.value, CpuSet):
            assert found.effective_cpus == write.value, write
        if isinstance(write.value, MemSet):
            assert found.effective_mems == write.value, write
