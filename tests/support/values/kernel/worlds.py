"""Hypothesis strategies: machines, arbitrary trees of cgroups, specs."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_campaigns.histories.kernel.model import Group, KernelModel
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver, Qos
from numapin_enforcer.cgroups.tree import Tree, Version, parent
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.desired import desire

NAMING = CgroupNaming(Driver.CGROUPFS)


@dataclass(frozen=True)
class Pod:
    """A pod of the world: `members` are its containers, `nesting` those that made cgroups."""

    uid: str
    qos: Qos
    members: tuple[str, ...]
    nesting: frozenset[str]
    stranger: bool
    naming: CgroupNaming = NAMING

    def path(self) -> str:
        return self.naming.pod_path(self.qos, self.uid)

    def container_id(self, name: str) -> str:
        return f"{self.uid[-1]}{name[-1]}".replace("p", "0").rjust(64, "0")

    def container_path(self, name: str) -> str:
        return f"{self.path()}/{self.container_id(name)}"

    def paths(self) -> list[str]:
        found = [self.path(), self.container_path("sandbox-f")]
        for name in self.members:
            path = self.container_path(name)
            found += (
                [path, f"{path}/inner", f"{path}/inner/most"] if name in self.nesting else [path]
            )
        return [*found, f"{self.path()}/stranger"] if self.stranger else found


@dataclass(frozen=True)
class World:
    """A machine and the pods on it; `strangers` are cgroups that no kubelet made."""

    version: Version
    topology: Topology
    possible: CpuSet
    pods: tuple[Pod, ...]
    naming: CgroupNaming = NAMING
    strangers: tuple[str, ...] = ()

    def names(self) -> dict[str, str]:
        """What the runtime lists: every container, no sandbox."""
        return {pod.container_id(name): name for pod in self.pods for name in pod.members}

    def containers(self) -> list[tuple[Pod, str]]:
        return [(pod, name) for pod in self.pods for name in pod.members]

    def path_of(self, one: ContainerAssignment) -> str:
        """The cgroup of a container of a spec."""
        pods = {pod.uid: pod for pod in self.pods}
        return pods[one.pod_uid].container_path(one.container)

    def desired(self, spec: NodeAssignmentSpec, tree: Tree) -> dict[str, Desired]:
        return desire(spec, tree, self.naming, self.names(), self.topology)

    def model(self) -> KernelModel:
        """The tree of this machine with every cgroup just created: on v1 without any set."""
        model = KernelModel(self.version, self.possible, self.topology.mems, self.naming.root)
        model.set_online(self.topology.online)
        for path in self.paths():
            model.make(path)
        return model

    def paths(self) -> list[str]:
        """Every cgroup but the root, parents first."""
        classes = [self.naming.qos_path(qos) for qos in (Qos.BURSTABLE, Qos.BEST_EFFORT)]
        return [*classes, *(path for pod in self.pods for path in pod.paths()), *self.strangers]


def pods(uid: str, naming: CgroupNaming) -> st.SearchStrategy[Pod]:
    return st.sampled_from((2, 3, 1, 0)).flatmap(lambda count: _pods(uid, naming, count))


def _pods(uid: str, naming: CgroupNaming, count: int) -> st.SearchStrategy[Pod]:
    members = tuple(f"container-{letter}" for letter in "abc"[:count])
    nesting = st.frozensets(st.sampled_from(members)) if members else st.just(frozenset())
    args = (st.sampled_from(Qos), st.just(members), nesting, st.booleans(), st.just(naming))
    return st.builds(Pod, st.just(uid), *args)


@st.composite
def worlds_on(draw: st.DrawFn, version: Version, topology: Topology, naming: CgroupNaming) -> World:
    """Pods on a given machine whose every CPU may come online."""
    made = tuple(
        draw(pods(f"pod-{index}", naming)) for index in range(draw(st.sampled_from((2, 3, 1))))
    )
    root, burstable = naming.root, naming.qos_path(Qos.BURSTABLE)
    unknown = (f"{root}/unknown", f"{root}/unknown/inner", f"{burstable}/odd")
    strangers = unknown if draw(st.booleans(), label="strangers") else ()
    possible = topology.online | topology.offline
    return World(version, topology, possible, made, naming, strangers)


@st.composite
def worlds(draw: st.DrawFn, versions: Iterable[Version] = Version) -> World:
    """Machines with CPUs offline, and with NUMA nodes that have no memory or no CPU."""
    count = draw(st.sampled_from((5, 8, 6, 3, 4, 2)), label="cpus")
    nodes = draw(st.sampled_from((3, 4, 2, 1)), label="numa nodes")
    bare = draw(st.sets(st.integers(1, nodes)), label="without memory")
    last = draw(st.integers(1, nodes), label="numa nodes with CPUs")
    offline = CpuSet(draw(st.sets(st.integers(1, count - 1), max_size=count // 3)))
    online = CpuSet(range(count)) - offline
    topology = Topology(
        tuple(Cpu(cpu, cpu, 0, 0, cpu % last) for cpu in online),
        tuple(NumaNode(node, 0 if node in bare else 2**30) for node in range(nodes)),
        offline,
    )
    return draw(worlds_on(draw(st.sampled_from(tuple(versions))), topology, NAMING))


@st.composite
def specs(draw: st.DrawFn, world: World) -> NodeAssignmentSpec:
    """A valid spec: some containers own CPUs, some have memory of their own, the rest share."""
    order = draw(st.permutations(sorted(world.topology.online)))
    few = draw(st.integers(1, max(1, len(order) // 3)), label="shared at least")
    shared, free = CpuSet(order[:few]), list(order[few:])
    listed = []
    for pod, name in world.containers():
        count = draw(st.sampled_from((1, 1, 1, 2, 3, 0)), label="owned")
        cpus, free = CpuSet(free[:count]), free[count:]
        nodes = draw(bindings(world))
        if cpus or nodes:
            listed.append(assigned(pod, name, cpus, nodes))
    pools = Pools(reserved=CpuSet(list(shared)[:1]), shared=shared | CpuSet(free))
    return NodeAssignmentSpec(pools=pools, containers=tuple(listed))


def assigned(pod: Pod, name: str, cpus: CpuSet, mems: MemSet) -> ContainerAssignment:
    return ContainerAssignment(
        pod_uid=pod.uid,
        namespace="default",
        pod=pod.uid,
        container=name,
        cpus=cpus,
        mems=mems,
        exclusive=bool(cpus),
    )


@st.composite
def rearranged(draw: st.DrawFn, world: World, spec: NodeAssignmentSpec) -> NodeAssignmentSpec:
    """The same with other CPUs: exclusive containers and pool swap, in chains and cycles too."""
    online = sorted(world.topology.online)
    by = draw(st.integers(1, len(online)))
    turned, mirrored = [*online[by:], *online[:by]], online[::-1]
    orders = st.sampled_from((mirrored, mirrored, turned)) | st.permutations(online)
    moved = dict(zip(online, draw(orders), strict=True))

    def move(cpus: CpuSet) -> CpuSet:
        return CpuSet(moved[cpu] for cpu in cpus)

    assert spec.pools is not None
    pools = Pools(reserved=move(spec.pools.reserved), shared=move(spec.pools.shared))
    listed = []
    for one in spec.containers:
        mems = draw(st.just(one.mems) | bindings(world))
        listed.append(replace(one, cpus=move(one.cpus), mems=mems))
    return NodeAssignmentSpec(pools=pools, containers=tuple(listed))


def bindings(world: World) -> st.SearchStrategy[MemSet]:
    """Where a container's memory is to be: mostly on one node; empty is anywhere."""
    single = st.sampled_from(sorted(world.topology.mems)).map(lambda node: MemSet([node]))
    return single | _some(world.topology.mems).map(MemSet)


def followers(world: World, spec: NodeAssignmentSpec) -> st.SearchStrategy[NodeAssignmentSpec]:
    """What may come after a spec: the same with other CPUs, or now and then any other."""
    return st.sampled_from((True, True, False)).flatmap(
        lambda same: rearranged(world, spec) if same else specs(world)
    )


@st.composite
def scattered(draw: st.DrawFn, world: World) -> KernelModel:
    """The world's tree with any sets that the kernel permits."""
    model = world.model()
    top = model.groups[world.naming.root]
    if draw(st.sampled_from((True, True, True, False)), label="kubepods asks"):
        online = st.sampled_from(sorted(world.topology.online))
        is_v1 = world.version is Version.V1
        top.cpus = CpuSet(draw(st.sets(online, min_size=1))) if is_v1 else world.possible
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


def born(model: KernelModel, path: str) -> None:
    """A cgroup appears as runc and the kubelet make it: on v1 with the sets of its parent."""
    model.make(path)
    if model.version is Version.V1:
        above = model.groups[parent(path)]
        model.groups[path] = Group(above.cpus, above.mems)
