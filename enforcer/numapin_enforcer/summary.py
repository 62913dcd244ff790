"""Pure: what the kernel's answer means for the status: who has what, and who has it alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import ContainerStatus, NodeAssignmentSpec, PoolsInForce
from numapin_enforcer.cgroups import Cgroup, Tree
from numapin_enforcer.desired import Desired
from numapin_enforcer.layout import Kind, Layout

LEAVES: Final = frozenset({Kind.CONTAINER, Kind.NESTED, Kind.OTHER})


@dataclass(frozen=True, slots=True)
class Summary:
    """A node as its kernel has it.

    Attributes:
        containers: the spec's containers that run.
        pools: the pools in force.
        running: UIDs of the spec's pods whose cgroups exist.
    """

    containers: tuple[ContainerStatus, ...] = ()
    pools: PoolsInForce | None = None
    running: tuple[str, ...] = ()


def summarize(
    spec: NodeAssignmentSpec, tree: Tree, desired: Mapping[str, Desired], layout: Layout
) -> Summary:
    """Tell what `tree`, read back after all writes, means for `spec`.

    A container counts as exclusive when it is on its own CPUs and no other cgroup may use any of
    them, those around it aside.
    """
    scene = _Scene(tree, desired, layout)
    assigned = {one.pod_uid for one in spec.containers}
    containers = tuple(scene.containers())
    exclusive = CpuSet()
    for one in containers:
        exclusive |= one.cpus if one.exclusive else CpuSet()
    running = tuple(sorted(assigned & scene.pods))
    return Summary(containers, scene.pools(spec, exclusive), running)


class _Scene:
    def __init__(self, tree: Tree, desired: Mapping[str, Desired], layout: Layout) -> None:
        self._desired = desired
        known = [one for path, one in tree.cgroups.items() if path in desired]
        places = [(one, layout.place(one.path)) for one in known]
        self.pods = {place.pod_uid for _, place in places if place.kind is Kind.POD}
        self._containers = [one for one, place in places if place.kind is Kind.CONTAINER]
        self._leaves = [one for one, place in places if place.kind in LEAVES]
        self._around = [one for one, place in places if place.kind in {Kind.POD, Kind.QOS}]
        self._owned = {path: one for path, one in desired.items() if one.owner}

    def containers(self) -> Iterator[ContainerStatus]:
        """The spec's containers, in the order of their pods and names."""
        foreign = self._foreign()
        found = {}
        for one in self._containers:
            wanted = self._desired[one.path]
            if wanted.container is None:
                continue
            key = (wanted.container.pod_uid, wanted.container.container)
            found[key] = ContainerStatus(
                pod_uid=key[0],
                container=key[1],
                cpus=one.effective_cpus,
                mems=one.effective_mems,
                exclusive=self._alone(one, wanted, foreign),
            )
        yield from (found[key] for key in sorted(found))

    def pools(self, spec: NodeAssignmentSpec, exclusive: CpuSet) -> PoolsInForce | None:
        """The pools; the shared one as the containers in it have it."""
        if spec.pools is None:
            return None
        shared = CpuSet()
        for one in self._leaves:
            shared |= CpuSet() if one.path in self._owned else one.effective_cpus
        return PoolsInForce(
            reserved=spec.pools.reserved, shared=shared or spec.pools.shared, exclusive=exclusive
        )

    def _alone(self, one: Cgroup, wanted: Desired, foreign: Mapping[str, CpuSet]) -> bool:
        if not wanted.owner or one.effective_cpus != wanted.cpus:
            return False
        others = (cpus for owner, cpus in foreign.items() if owner != wanted.owner)
        return all(one.effective_cpus.isdisjoint(cpus) for cpus in others)

    def _foreign(self) -> dict[str, CpuSet]:
        """By owner, what cgroups may use; under the empty owner that of all who own nothing.

        Pods and QoS classes hold their containers' CPUs; what they have beyond that counts.
        """
        used: dict[str, CpuSet] = {}
        for one in self._leaves:
            owner = self._desired[one.path].owner
            used[owner] = used.get(owner, CpuSet()) | one.effective_cpus
        for one in self._around:
            beyond = one.effective_cpus - self._desired[one.path].cpus
            used[""] = used.get("", CpuSet()) | beyond
        return used
