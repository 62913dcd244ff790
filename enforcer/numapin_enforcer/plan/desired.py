"""Pure: what each cgroup should have, from the accepted spec and what runs."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import ContainerAssignment, NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_enforcer.cgroups.naming import Kind, Layout, Place
from numapin_enforcer.cgroups.tree import Cgroup, Tree


@dataclass(frozen=True, slots=True)
class Desired:
    """What one cgroup should have; neither set is empty.

    `container` names the container of the spec that the cgroup belongs to, and `exclusive` says
    that nobody else may run on its CPUs.
    """

    cpus: CpuSet
    mems: MemSet
    container: ContainerAssignment | None = None
    exclusive: bool = False

    @property
    def owner(self) -> str:
        """The one container that may run on `cpus`, or empty."""
        if self.container is None or not self.exclusive:
            return ""
        return f"{self.container.pod_uid}/{self.container.container}"


def desire(
    spec: NodeAssignmentSpec,
    tree: Tree,
    layout: Layout,
    names: Mapping[str, str],
    topology: Topology,
) -> dict[str, Desired]:
    """What every cgroup of `tree` should have while `spec` is in force.

    Sandboxes and containers that the spec does not list get the shared pool; pods and QoS classes
    the shared pool and what is exclusive below them; kubepods itself stays as found as long as it
    holds all that. A cgroup whose container is not known gets the shared pool, with two exceptions.
    It is the only one of its pod that is not known, and there is but one owner that it may be: then
    it waits on that one's CPUs, which are nobody else's, because CRI-O tells the name too late for
    the container's first instruction. Or it stands on the very set of one of its pod's containers
    that no other cgroup is known to be: then it is that container, and a runtime that does not
    answer unpins nobody. CPUs and NUMA nodes that went offline are left out.

    Args:
        spec: an accepted spec, whose `pools` are set.
        tree: what runs.
        layout: how to read its paths.
        names: container id to container name, as the runtime lists them; a sandbox's is empty.
        topology: the machine now.

    Returns:
        An entry for each cgroup of `tree`, parents containing their children.
    """
    scene = _Scene(spec, tree, layout, names, topology)
    wanted: dict[str, Desired] = {}
    for path, above in tree.parents.items():
        wanted[path] = scene.want(tree.cgroups[path], wanted.get(above))
    return contain(tree, wanted, topology)


def owned_cpus(wanted: Iterable[Desired]) -> CpuSet:
    """Every CPU that a container is to own."""
    return CpuSet.union(one.cpus for one in wanted if one.owner)


def release(tree: Tree, topology: Topology) -> dict[str, Desired]:
    """What every cgroup should have when numapin lets go: all that kubepods has.

    This is for giving back what numapin set, once: a later hand-made set is not numapin's affair.
    """
    return contain(
        tree, dict.fromkeys(list(tree.cgroups)[1:], _everything(tree, topology)), topology
    )


def contain(tree: Tree, wanted: Mapping[str, Desired], topology: Topology) -> dict[str, Desired]:
    """`wanted` with every parent widened to hold its children, and kubepods as found or wider."""
    cpus = {path: one.cpus.mask for path, one in wanted.items()}
    mems = {path: one.mems.mask for path, one in wanted.items()}
    cpus[tree.root] = mems[tree.root] = 0
    for path, above in reversed(tuple(tree.parents.items())):
        cpus[above] |= cpus[path]
        mems[above] |= mems[path]
    result = {tree.root: _kubepods(tree, CpuSet.from_mask(cpus[tree.root]), topology)}
    for path, one in wanted.items():
        if (cpus[path], mems[path]) == (one.cpus.mask, one.mems.mask):
            result[path] = one
        else:
            held = (CpuSet.from_mask(cpus[path]), MemSet.from_mask(mems[path]))
            result[path] = Desired(*held, one.container, one.exclusive)
    return result


def _kubepods(tree: Tree, below: CpuSet, topology: Topology) -> Desired:
    """The root: as found while it holds what is wanted below, else all that is online."""
    found = tree.cgroups[tree.root]
    cpus = found.effective_cpus & topology.online
    mems = found.effective_mems & topology.mems
    enough = bool(cpus) and below <= cpus and mems == topology.mems
    return Desired(cpus, mems) if enough else Desired(topology.online, topology.mems)


def _everything(tree: Tree, topology: Topology) -> Desired:
    return _kubepods(tree, CpuSet(), topology)


class _Scene:
    """What the pass knows, and the answer for one cgroup at a time, parents first."""

    def __init__(
        self,
        spec: NodeAssignmentSpec,
        tree: Tree,
        layout: Layout,
        names: Mapping[str, str],
        topology: Topology,
    ) -> None:
        self._tree, self._names = tree, names
        self._places = {path: layout.place(path) for path in tree.cgroups}
        self._online, self._mems = topology.online, topology.mems
        self._pods: dict[str, dict[str, ContainerAssignment]] = {}
        for one in spec.containers:
            self._pods.setdefault(one.pod_uid, {})[one.container] = one
        self._shared = Desired(self._shared_cpus(spec), self._mems)
        ids = [
            (one.pod_uid, one.container_id)
            for one in self._places.values()
            if one.kind is Kind.CONTAINER
        ]
        self._known = {(uid, names[each]) for uid, each in ids if each in names}
        self._unnamed = Counter(uid for uid, each in ids if each not in names)
        self._met = {uid for uid, _ in self._known}

    def want(self, cgroup: Cgroup, above: Desired | None) -> Desired:
        """What one cgroup should have before its children are counted in."""
        place = self._places[cgroup.path]
        if place.kind is Kind.CONTAINER:
            return self._container(cgroup, place)
        if place.kind is Kind.NESTED and above is not None:
            return self._nested(cgroup, above)
        if place.kind is Kind.POD:
            return self._pod(self._pods.get(place.pod_uid, {}).values())
        return self._shared

    def _shared_cpus(self, spec: NodeAssignmentSpec) -> CpuSet:
        """The shared pool that is online; if none is, what nobody owns, and at worst every CPU."""
        pool = spec.pools.shared if spec.pools else CpuSet()
        return pool & self._online or self._online - spec.exclusive_cpus or self._online

    def _assigned(self, one: ContainerAssignment) -> Desired:
        """What the spec gives a container, as far as it is online."""
        own = one.cpus & self._online
        return Desired(
            own or self._shared.cpus,
            one.mems & self._mems or self._mems,
            one,
            exclusive=one.exclusive and bool(own) and own.isdisjoint(self._shared.cpus),
        )

    def _pod(self, listed: Iterable[ContainerAssignment]) -> Desired:
        """A pod holds its containers' own CPUs before they come, or they could not be made."""
        own = CpuSet.union(self._assigned(one).cpus for one in listed)
        return Desired(self._shared.cpus | own, self._mems)

    def _container(self, cgroup: Cgroup, place: Place) -> Desired:
        listed = self._pods.get(place.pod_uid, {})
        name = self._names.get(place.container_id)
        if name is not None:
            return self._assigned(listed[name]) if name in listed else self._shared
        if newborn := self._newborn(place.pod_uid, listed.values()):
            return newborn
        for one in listed.values():
            known = (place.pod_uid, one.container) in self._known
            if one.exclusive and not known and one.cpus & self._online == cgroup.effective_cpus:
                return self._assigned(one)
        return self._shared

    def _newborn(self, pod_uid: str, listed: Iterable[ContainerAssignment]) -> Desired | None:
        """What the one container of a pod waits on that has no name yet; None to go by what it has.

        It is none of its pod's owners yet, and those who are there keep their CPUs to themselves.
        """
        if self._unnamed[pod_uid] != 1 or pod_uid not in self._met:
            return None
        there, missing = CpuSet(), set[tuple[CpuSet, MemSet]]()
        for one in map(self._assigned, listed):
            if one.exclusive and one.container is not None:
                if (pod_uid, one.container.container) in self._known:
                    there |= one.cpus
                else:
                    missing.add((one.cpus, one.mems))
        if len(missing) != 1:
            return None
        cpus, mems = missing.pop()
        return Desired(cpus, mems) if cpus.isdisjoint(there) else None

    def _nested(self, cgroup: Cgroup, above: Desired) -> Desired:
        """A cgroup inside a container: it goes with it, but keeps a narrower choice of its own."""
        found = self._tree.cgroups[self._tree.parents[cgroup.path]]
        cpus, mems = cgroup.effective_cpus, cgroup.effective_mems
        return Desired(
            above.cpus if cpus == found.effective_cpus else cpus & above.cpus or above.cpus,
            above.mems if mems == found.effective_mems else mems & above.mems or above.mems,
            above.container,
            above.exclusive,
        )
