"""The CPUs and NUMA nodes that each cgroup must have, from the accepted spec and the tree."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from enum import Enum, auto
from typing import NamedTuple

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_enforcer.cgroups.naming import CgroupName, CgroupNaming, Kind
from numapin_enforcer.cgroups.tree import Cgroup, Tree
from numapin_enforcer.plan.containment import (
    NONE_BOUND,
    Desired,
    FoundMems,
    contain,
    kubepods,
    left_mems,
)


def desire(
    spec: NodeAssignmentSpec,
    tree: Tree,
    naming: CgroupNaming,
    names: Mapping[str, str],
    topology: Topology,
) -> dict[str, Desired]:
    """The sets that every cgroup of `tree` must have while `spec` is in force.

    Sandboxes and containers that the spec does not list get the shared pool. Pods and QoS classes
    get the shared pool and the exclusive CPUs of their descendants. The kubepods cgroup stays as it
    is if it contains all that. CPUs and NUMA nodes that are offline are left out.

    NUMA nodes are those of the spec for a container that it binds. Every other cgroup keeps what it
    has, and an empty set becomes that of the parent, as runc does it. Parents of bound containers
    gain what these need.

    A cgroup whose container is not named yet gets the shared pool, with three exceptions:

    - It is the only unnamed one of its pod, and only one exclusive set of the pod has no named
      container. It gets that set at once, because CRI-O gives the name too late for the container's
      first instruction. No other container has these CPUs.
    - It has exactly the CPUs of an exclusive container of its pod that no cgroup is named as. It is
      taken for that container, so that a runtime that does not answer unpins no container.
    - It has some of the CPUs of such containers, and none of the pool. It keeps those: it can be
      one that is being moved or resized, on the set of an earlier spec. It is granted no others.

    Args:
        spec: an accepted spec, whose `pools` are set.
        tree: the cgroups as read.
        naming: how to read their paths.
        names: container id to container name, as the runtime lists them; a sandbox's is empty.
        topology: the machine's present state.

    Returns:
        An entry for each cgroup of `tree`, parents containing their children.
    """
    rules = Rules(spec, naming, topology)
    return contain(tree, rules.desired(tree, names, tree.parents), topology)


def exclusive_cpus(wanted: Iterable[Desired]) -> CpuSet:
    """All CPUs that containers must have exclusively."""
    return CpuSet.union(one.cpus for one in wanted if one.exclusive and one.container)


def release(
    tree: Tree,
    topology: Topology,
    found_mems: FoundMems = NONE_BOUND,
    kept: Collection[str] = (),
) -> dict[str, Desired]:
    """The sets of every cgroup once numapin enforces nothing: all CPUs that kubepods has.

    NUMA nodes are restored to `found_mems`. The sets are written once. Sets that others write later
    stay. The cgroups of `kept` keep the CPUs that they have.
    """
    everything = kubepods(tree, (), topology)
    wanted = {
        path: Desired(
            (tree.cgroups[path].effective_cpus if path in kept else None) or everything.cpus,
            left_mems(tree, path, found_mems) or everything.mems,
        )
        for path in tree.parents
    }
    return contain(tree, wanted, topology)


class _Certainty(Enum):
    """How it is known which container a cgroup is."""

    NAMED = auto()
    """The runtime lists its name."""
    AWAITED = auto()
    """Only one exclusive set of the pod has no named container, and only this cgroup no name."""
    ON_ITS_CPUS = auto()
    """It has exactly the CPUs of an exclusive container that no cgroup is named as."""
    UNKNOWN = auto()
    """It can be any container of its pod, or its sandbox."""


class _Identity(NamedTuple):
    certainty: _Certainty
    container: ContainerAssignment | None


class Rules:
    """What each kind of cgroup must have while one spec is in force."""

    def __init__(
        self,
        spec: NodeAssignmentSpec,
        naming: CgroupNaming,
        topology: Topology,
        found_mems: FoundMems = NONE_BOUND,
    ) -> None:
        """Args: as in `desire`; `found_mems` is restored where `spec` binds no longer."""
        self._naming, self._online, self._mems = naming, topology.online, topology.mems
        self.found_mems = found_mems
        self._pods: dict[str, dict[str, ContainerAssignment]] = {}
        for one in spec.containers:
            self._pods.setdefault(one.pod_uid, {})[one.container] = one
        self.shared = Desired(self._shared_cpus(spec), MemSet())
        """What every cgroup has that is not of a container in the spec; empty NUMA nodes stay."""
        self._shared_on: dict[int, Desired] = {}
        reserved = spec.pools.reserved & self._online if spec.pools else CpuSet()
        confined = Desired(reserved or self.shared.cpus, MemSet())
        self._confined = dict.fromkeys(spec.confined or (), confined)

    def desired(
        self, tree: Tree, names: Mapping[str, str], paths: Iterable[str]
    ) -> dict[str, Desired]:
        """The sets of some cgroups before they are widened for their children.

        Args:
            tree: the cgroups as read.
            names: as in `desire`.
            paths: parents first, not the root. A cgroup of a pod comes with all cgroups of that
                pod, any other with its ancestors.
        """
        parsed = {path: self._naming.parse(path) for path in paths}
        found = _Found(self, tree, names, parsed)
        desired: dict[str, Desired] = {}
        for path, name in parsed.items():
            above = desired.get(tree.parents[path])
            one = found.desired(tree.cgroups[path], name, above)
            desired[path] = one if one.mems else self._on_left_mems(one, tree, path)
        return desired

    def listed(self, pod_uid: str) -> Mapping[str, ContainerAssignment]:
        """The containers of a pod that the spec lists, by name."""
        return self._pods.get(pod_uid, {})

    def unassigned(self, pod_uid: str) -> Desired:
        """What cgroups of a pod have that are of no container which the spec lists."""
        return self._confined.get(pod_uid, self.shared)

    def assigned(self, one: ContainerAssignment) -> Desired:
        """The sets that the spec gives a container, without what is offline."""
        own = one.cpus & self._online
        return Desired(
            own or self.shared.cpus,
            one.mems & self._mems,
            one,
            exclusive=one.exclusive and bool(own) and own.isdisjoint(self.shared.cpus),
        )

    def pod(self, pod_uid: str) -> Desired:
        """A pod has its containers' CPUs before they exist: runc cannot create them otherwise."""
        listed = self._pods.get(pod_uid)
        if listed is None:
            return self.unassigned(pod_uid)
        own = CpuSet.union(self.assigned(one).cpus for one in listed.values())
        return Desired(self.shared.cpus | own, MemSet())

    def _on_left_mems(self, one: Desired, tree: Tree, path: str) -> Desired:
        mems = left_mems(tree, path, self.found_mems) or self._mems
        if one is not self.shared:
            return Desired(one.cpus, mems, one.container, one.exclusive)
        shared = self._shared_on.get(mems.mask)
        if shared is None:
            shared = self._shared_on[mems.mask] = Desired(one.cpus, mems)
        return shared

    def online(self, one: ContainerAssignment) -> CpuSet:
        """Those of a container's CPUs that are online."""
        return one.cpus & self._online

    def _shared_cpus(self, spec: NodeAssignmentSpec) -> CpuSet:
        """The online CPUs of the pool; if there is none, those not exclusive; at worst all."""
        pool = spec.pools.shared if spec.pools else CpuSet()
        return pool & self._online or self._online - spec.exclusive_cpus or self._online


class _Found:
    """Which containers the cgroups of a tree are, and what they must have therefore."""

    def __init__(
        self,
        rules: Rules,
        tree: Tree,
        names: Mapping[str, str],
        parsed: Mapping[str, CgroupName],
    ) -> None:
        self._rules, self._tree, self._names = rules, tree, names
        ids = [
            (one.pod_uid, one.container_id) for one in parsed.values() if one.kind is Kind.CONTAINER
        ]
        self._named = {(uid, names[each]) for uid, each in ids if each in names}
        self._unnamed = Counter(uid for uid, each in ids if each not in names)
        self._pods_with_names = {uid for uid, _ in self._named}

    def desired(self, cgroup: Cgroup, parsed: CgroupName, parent: Desired | None) -> Desired:
        """The sets of one cgroup before it is widened for its children; `parent` is known."""
        if parsed.kind is Kind.CONTAINER:
            return self._container(cgroup, parsed)
        if parsed.kind is Kind.NESTED and parent is not None:
            return self._nested(cgroup, parent)
        if parsed.kind is Kind.POD:
            return self._rules.pod(parsed.pod_uid)
        return self._rules.shared

    def _container(self, cgroup: Cgroup, parsed: CgroupName) -> Desired:
        """By the container that the cgroup is: a known one gets its own CPUs, others the pool.

        CPUs are reserved, not granted, for a container whose name must still come.
        """
        certainty, container = self._identify(cgroup, parsed)
        if certainty is _Certainty.UNKNOWN and (kept := self._kept(cgroup, parsed.pod_uid)):
            return Desired(kept, cgroup.effective_mems)
        if container is None:
            return self._rules.unassigned(parsed.pod_uid)
        assigned = self._rules.assigned(container)
        if certainty is _Certainty.AWAITED:
            return Desired(assigned.cpus, assigned.mems)
        return assigned

    def _identify(self, cgroup: Cgroup, parsed: CgroupName) -> _Identity:
        """Which container of the spec a cgroup is; None if the spec does not list it."""
        listed = self._rules.listed(parsed.pod_uid)
        name = self._names.get(parsed.container_id)
        if name is not None:
            return _Identity(_Certainty.NAMED, listed.get(name))
        awaited = self._awaited(parsed.pod_uid, listed.values())
        if awaited is not None:
            return _Identity(_Certainty.AWAITED, awaited)
        for one in listed.values():
            named = one.key in self._named
            if one.exclusive and not named and self._rules.online(one) == cgroup.effective_cpus:
                return _Identity(_Certainty.ON_ITS_CPUS, one)
        return _Identity(_Certainty.UNKNOWN, None)

    def _kept(self, cgroup: Cgroup, pod_uid: str) -> CpuSet:
        """The CPUs that an unnamed cgroup keeps; none if it has some of the pool, as if new."""
        if not cgroup.effective_cpus.isdisjoint(self._rules.shared.cpus):
            return CpuSet()
        return cgroup.effective_cpus & CpuSet.union(
            self._rules.online(one)
            for one in self._rules.listed(pod_uid).values()
            if one.exclusive and one.key not in self._named
        )

    def _awaited(
        self, pod_uid: str, listed: Iterable[ContainerAssignment]
    ) -> ContainerAssignment | None:
        """The exclusive container that the only unnamed cgroup of a pod can be.

        None if several cgroups of the pod are unnamed or all are, if the unnamed containers have
        different sets, or if their set overlaps that of a named exclusive container. The result
        stands for every unnamed container with the same set.
        """
        if self._unnamed[pod_uid] != 1 or pod_uid not in self._pods_with_names:
            return None
        named_cpus, unnamed = CpuSet(), dict[tuple[CpuSet, MemSet], ContainerAssignment]()
        for one in listed:
            assigned = self._rules.assigned(one)
            if not assigned.exclusive:
                continue
            if one.key in self._named:
                named_cpus |= assigned.cpus
            else:
                unnamed[assigned.cpus, assigned.mems] = one
        if len(unnamed) != 1:
            return None
        (((cpus, _), container),) = unnamed.items()
        return container if cpus.isdisjoint(named_cpus) else None

    def _nested(self, cgroup: Cgroup, parent: Desired) -> Desired:
        """A cgroup inside a container: it follows its parent, but stays narrower if it was."""
        found = self._tree.cgroups[self._tree.parents[cgroup.path]]
        cpus, mems = cgroup.effective_cpus, cgroup.effective_mems
        return Desired(
            parent.cpus if cpus == found.effective_cpus else cpus & parent.cpus or parent.cpus,
            parent.mems if mems == found.effective_mems else mems & parent.mems or parent.mems,
            parent.container,
            parent.exclusive,
        )
