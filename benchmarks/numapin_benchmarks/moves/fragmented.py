"""Small fragmented nodes, and every way to move containers on them."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import (
    ContainerAllocation,
    Node,
    NodePolicy,
    PlacementError,
    PodAllocation,
    PodView,
    SearchSpace,
    fewest_moves,
    resolve,
)
from numapin_operator.placement.masks import CpuMask, members

_SHAPES: Final = ((8, 1, 2), (8, 2, 2), (9, 1, 3), (12, 2, 3), (12, 1, 4), (12, 2, 2))
"""CPUs, threads of a core, NUMA nodes."""


def pod(name: str, *cpus: str) -> PodView:
    """A Guaranteed pod with a container c0, c1, .. for each CPU request."""
    amounts = [{"cpu": one, "memory": "64Mi"} for one in cpus]
    containers = [
        {"name": f"c{index}", "resources": {"requests": one, "limits": one}}
        for index, one in enumerate(amounts)
    ]
    metadata = {"name": name, "uid": f"uid-{name}"}
    return parse_pod({"metadata": metadata, "spec": {"containers": containers}})


def policy(**fields: Any) -> CpuPolicySpec:
    """A policy that reserves CPU 0, unless `reserved` says otherwise."""
    return CpuPolicySpec.model_validate({"reserved": {"cpus": "0"}} | fields)


def _machine(cpus: int, threads: int, numa_nodes: int) -> Topology:
    """Cores of neighbouring siblings; a socket for each NUMA node, all of one size."""
    size = cpus // numa_nodes
    found = (
        Cpu(one, one // threads * threads, one // size, -1, one // size) for one in range(cpus)
    )
    return Topology(tuple(found), tuple(NumaNode(one, 16 << 30) for one in range(numa_nodes)))


@dataclass(frozen=True)
class Fragmented:
    """A node on which a pod does not fit, and the containers that may be moved."""

    policy: NodePolicy
    allocations: Mapping[str, PodAllocation]
    pods: Mapping[str, PodView]
    demand: PodView
    allowed: frozenset[tuple[str, str]]

    @property
    def space(self) -> SearchSpace:
        """What a search for moves starts from."""
        return SearchSpace(self.node(self.allocations), self.node)

    def node(self, allocations: Mapping[str, PodAllocation]) -> Node:
        """The node with these allocations."""
        made = Node(self.policy)
        for allocation in allocations.values():
            made.adopt(allocation)
        return made

    def fits(self, allocations: Mapping[str, PodAllocation]) -> bool:
        """Whether the pod fits beside these allocations."""
        try:
            self.node(allocations).place(self.demand)
        except PlacementError:
            return False
        return True


def fragmented(rng: random.Random) -> Fragmented | None:
    """A random small node; None if the pod fits there, or if fewer CPUs are free than it needs."""
    cpus, threads, numa_nodes = rng.choice(_SHAPES)
    fields = {
        "topology": {
            "policy": rng.choice(("SingleNUMANode", "SingleNUMANode", "Restricted")),
            "scope": rng.choice(("Container", "Container", "Pod")),
        },
        "options": {"fullPCPUsOnly": threads > 1 and rng.random() < 0.5},
    }
    known = resolve(_machine(cpus, threads, numa_nodes), policy(**fields))
    step = threads if known.spec.options.full_pcpus_only else 1
    node, pods = Node(known), dict[str, PodView]()
    for number in range(12):
        sizes = [str(step * rng.choice((1, 1, 2, 3))) for _ in range(rng.choice((1, 1, 1, 2)))]
        view = pod(f"p{number}", *sizes)
        try:
            node.place(view)
        except PlacementError:
            continue
        pods[view.uid] = view
    for uid in rng.sample(sorted(pods), rng.randint(1, max(1, len(pods) // 2))) if pods else ():
        node.release(uid)
        del pods[uid]
    wanted = step * rng.choice((2, 2, 3, 4, 5))
    if wanted > node.cpus.free.bit_count():
        return None
    demand = pod("demand", str(wanted))
    containers = [
        (uid, one.name) for uid, given in node.allocations.items() for one in given.containers
    ]
    allowed = frozenset(one for one in containers if rng.random() < 0.9)
    made = Fragmented(known, dict(node.allocations), pods, demand, allowed)
    return None if made.fits(made.allocations) else made


def cheaper_moves(case: Fragmented, below: int) -> Iterator[dict[str, PodAllocation]]:
    """Every outcome of moves that costs fewer than `below` CPUs and lets the pod fit.

    Whole sets of CPUs are tried, and the policy itself is asked about each.
    """
    free = case.node(case.allocations).cpus.free
    groups = [group for uid in case.allocations for group in _groups(case, uid)]
    yield from _tried(case, groups, dict(case.allocations), free, below - 1)


def _groups(case: Fragmented, uid: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    names = tuple(one.name for one in case.allocations[uid].containers)
    if case.policy.spec.topology.scope == "Pod":
        if all((uid, name) in case.allowed for name in names):
            yield uid, names
    else:
        yield from ((uid, (name,)) for name in names if (uid, name) in case.allowed)


def _tried(
    case: Fragmented,
    groups: list[tuple[str, tuple[str, ...]]],
    allocations: dict[str, PodAllocation],
    free: CpuMask,
    budget: int,
) -> Iterator[dict[str, PodAllocation]]:
    if not groups:
        if case.fits(allocations):
            yield allocations
        return
    (uid, names), rest = groups[0], groups[1:]
    yield from _tried(case, rest, allocations, free, budget)
    before = [one for one in allocations[uid].containers if one.name in names]
    for after in _alternatives(before, free, budget):
        arriving = CpuMask(0)
        for old, new in zip(before, after, strict=True):
            arriving |= new.cpus & ~old.cpus
        if after != before and _acceptable(case, uid, before, after):
            by_name = {one.name: one for one in after}
            pod_allocation = allocations[uid]._replace(
                containers=tuple(by_name.get(c.name, c) for c in allocations[uid].containers)
            )
            changed = allocations | {uid: pod_allocation}
            spent = arriving.bit_count()
            yield from _tried(case, rest, changed, free & ~arriving, budget - spent)


def _alternatives(
    before: list[ContainerAllocation], free: CpuMask, budget: int
) -> Iterator[list[ContainerAllocation]]:
    if not before:
        yield []
        return
    first, rest = before[0], before[1:]
    for count in range(min(budget, first.cpus.bit_count()) + 1):
        for gone in combinations(members(first.cpus), count):
            for come in combinations(members(free), count):
                cpus = first.cpus & ~_mask(gone) | _mask(come)
                for others in _alternatives(rest, free & ~_mask(come), budget - count):
                    yield [first._replace(cpus=cpus), *others]


def _mask(cpus: tuple[int, ...]) -> CpuMask:
    return CpuMask(sum(1 << cpu for cpu in cpus))


def _acceptable(
    case: Fragmented, uid: str, before: list[ContainerAllocation], after: list[ContainerAllocation]
) -> bool:
    """Whether the policy would place the containers just so, on no more NUMA nodes than before."""
    groups = case.policy.cpu_groups
    had, has = CpuMask(0), CpuMask(0)
    for old, new in zip(before, after, strict=True):
        had, has = had | old.cpus, has | new.cpus
    if groups.numa_nodes_of(has).bit_count() > groups.numa_nodes_of(had).bit_count():
        return False
    if case.policy.spec.options.full_pcpus_only and any(
        groups.whole_cores(one.cpus) != one.cpus for one in after
    ):
        return False
    names = {one.name for one in after}
    view = case.pods[uid]
    alone = replace(view, containers=tuple(c for c in view.containers if c.name in names))
    node = Node(case.policy)
    node.cpus.claim(CpuMask(groups.cpus & ~has & ~case.policy.reserved))
    try:
        node.place(alone)
    except PlacementError:
        return False
    return True


def check_search(case: Fragmented) -> bool:
    """Assert that a search finds the fewest CPUs to move; return whether it found any moves."""
    searched = fewest_moves(case.space, case.demand, case.pods, case.allowed)
    assert searched.complete
    if searched.found is None:
        assert next(cheaper_moves(case, case.policy.cpu_groups.cpus.bit_count()), None) is None
        return False
    after = dict(case.allocations)
    for move in searched.found.moves:
        pod_before = after[move.uid]
        assert (move.uid, move.after.name) in case.allowed
        after[move.uid] = pod_before._replace(
            containers=tuple(move.after if c == move.before else c for c in pod_before.containers)
        )
    assert case.fits(after)
    arrived = sum(move.arriving.bit_count() for move in searched.found.moves)
    assert arrived == searched.found.moved_cpus
    assert next(cheaper_moves(case, arrived), None) is None
    return True
