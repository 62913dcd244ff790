"""Laws that every sequence of placing, resizing and releasing pods obeys, on random machines."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import ContainerAssignment, NodeAssignmentSpec
from numapin_api.topology import NumaNode, Topology
from numapin_operator.placement import (
    NodePolicy,
    PodView,
    PolicyError,
    mark_outdated,
    plan_with,
    resolve,
)
from support.values.placement import NO_UIDS, granted_pod, machine, policy
from support.values.situations import MIB, machines, policies

CPUS = ["1", "2", "2", "3", "4", "6", "500m", "1500m"]
MEMORY = ["64Mi", "256Mi", "1Gi", "3Gi"]
LEVELS = ["2", "3", "4", "6"]
"""CPUs of a pod as a whole; its containers with whole CPUs have them to themselves."""

Having = Mapping[tuple[str, str], ContainerAssignment]
Wishes = dict[str, tuple[tuple[str, str], ...]]
"""A pod's name to the CPUs and the memory of each of its containers."""


@dataclass
class Cluster:
    """One node over time: what its pods ask for, and what they have."""

    policy: NodePolicy
    wishes: Wishes = field(default_factory=dict)
    spec: NodeAssignmentSpec | None = None

    @property
    def pods(self) -> list[PodView]:
        return [granted_pod(name, *each) for name, each in self.wishes.items()]

    def plan(self) -> NodeAssignmentSpec:
        """Plan until nothing changes: a plan after the first does nothing but place refused pods.

        A refused pod that was edited is tried at each plan before younger ones. What a younger one
        is given can make it fit.
        """
        spec = self._planned()
        while (again := self._planned()).to_wire() != spec.to_wire():
            refused, still = ({one.pod_uid for one in each.refused} for each in (spec, again))
            assert still < refused
            placed = [one for one in again.containers if one.pod_uid in refused - still]
            assert sorted([*spec.containers, *placed], key=str) == sorted(again.containers, key=str)
            spec = again
        return spec

    def _planned(self) -> NodeAssignmentSpec:
        self.spec = plan_with(self.policy, self.spec, self.pods, NO_UIDS).spec
        return self.spec


@st.composite
def nodes(draw: st.DrawFn) -> Cluster:
    topology = draw(machines())
    spec: CpuPolicySpec = draw(policies(topology))
    try:
        return Cluster(resolve(topology, spec))
    except PolicyError:
        return Cluster(resolve(topology, CpuPolicySpec()))


def containers(draw: Any, count: int) -> tuple[tuple[str, str], ...]:
    return tuple((draw(st.sampled_from(CPUS)), draw(st.sampled_from(MEMORY))) for _ in range(count))


def step(cluster: Cluster, draw: Any, number: int) -> str | None:
    """One change of what the pods ask for; returns the pod that was resized."""
    action = draw(st.sampled_from(["place", "resize", "resize", "resize", "release"]))
    if action == "place" or not cluster.wishes:
        cluster.wishes[f"p{number}"] = containers(draw, draw(st.integers(1, 2)))
        return None
    name: str = draw(st.sampled_from(sorted(cluster.wishes)))
    if action == "release":
        del cluster.wishes[name]
        return None
    cluster.wishes[name] = containers(draw, len(cluster.wishes[name]))
    return name


def having(spec: NodeAssignmentSpec | None) -> Having:
    return {(one.pod, one.container): one for one in spec.containers} if spec else {}


def check_state(topology: Topology, spec: NodeAssignmentSpec) -> None:
    """Sets are apart, whole together, and none is empty."""
    assert spec.pools is not None
    assert spec.pools.shared
    exclusive = [one.cpus for one in spec.containers if one.exclusive]
    for one, other in combinations([*exclusive, spec.pools.shared], 2):
        assert one.isdisjoint(other)
    together = CpuSet.union(exclusive) | spec.pools.shared | spec.pools.reserved
    assert together == topology.online
    for entry in spec.containers:
        assert entry.exclusive == bool(entry.cpus)
        assert entry.grants is None or CpuSet.union(entry.grants) == entry.cpus
        for one, other in combinations(entry.grants or (), 2):
            assert one.isdisjoint(other)


def by_age(entry: ContainerAssignment) -> list[CpuSet]:
    return list(entry.grants or (entry.cpus,))


def check_change(cluster: Cluster, before: Having, after: Having) -> None:
    """Whoever grows keeps all, whoever shrinks keeps the oldest; nobody else changes."""
    whole_cores = cluster.policy.spec.options.full_pcpus_only
    for name, had in before.items():
        has = after.get(name)
        if has is None or not has.cpus or not had.cpus:
            continue
        assert has.cpus >= had.cpus or has.cpus <= had.cpus
        assert has.mems >= had.mems
        if has.cpus < had.cpus:
            check_prefix(by_age(had), has.cpus, whole_cores=whole_cores)


def check_prefix(ages: list[CpuSet], kept: CpuSet, *, whole_cores: bool) -> None:
    """An older CPU is given up only if no younger one stays, cores of mixed age aside."""
    for older, younger in pairwise(ages):
        if kept & younger and not whole_cores:
            assert older <= kept


def check_wishes(cluster: Cluster, spec: NodeAssignmentSpec) -> None:
    """Each placed container has what it asks for, or there is a reason why not."""
    waits = {(one.pod, one.container) for one in spec.refused_resizes or ()}
    placed = {one.pod for one in spec.containers}
    for pod in cluster.pods:
        for container in pod.containers if pod.name in placed else ():
            has = having(spec).get((pod.name, container.name))
            cpus = len(has.cpus) if has else 0
            if (pod.name, container.name) in waits:
                continue
            assert cpus == container.whole_cpus
            promised: dict[str, int] = {}
            for block in has.memory if has else ():
                promised[block.resource] = promised.get(block.resource, 0) + block.bytes
            assert not promised or tuple(promised.items()) == container.memory


def check_whole_cores(cluster: Cluster, spec: NodeAssignmentSpec) -> None:
    """What a resize adds or takes is whole cores; so is all of a container that had only such."""
    if not cluster.policy.spec.options.full_pcpus_only:
        return
    for entry in spec.containers:
        for grant in (entry.grants or ())[1:]:
            for core in cluster.policy.topology.core_cpus.values():
                assert core <= grant or core.isdisjoint(grant)


@given(nodes(), st.data())
@settings(max_examples=250, deadline=None)
def test_sequences_of_placing_resizing_and_releasing(cluster: Cluster, data: Any) -> None:
    for number in range(data.draw(st.integers(2, 8))):
        before = having(cluster.spec)
        step(cluster, data.draw, number)
        try:
            spec = cluster.plan()
        except PolicyError:
            return
        check_state(cluster.policy.topology, spec)
        check_change(cluster, before, having(spec))
        check_wishes(cluster, spec)
        check_whole_cores(cluster, spec)
        check_memory(cluster, spec)


def check_memory(cluster: Cluster, spec: NodeAssignmentSpec) -> None:
    """No NUMA nodes promise more than they have, alone or together."""
    promised: dict[str, int] = {}
    for entry in spec.containers:
        for block in entry.memory:
            promised[block.resource] = promised.get(block.resource, 0) + block.bytes
            assert set(block.numa_nodes) <= set(entry.mems)
    for resource, size in promised.items():
        assert size <= sum(cluster.policy.capacity[resource].values())


@given(nodes(), st.data())
@settings(max_examples=150, deadline=None)
def test_a_resized_container_is_not_outdated(cluster: Cluster, data: Any) -> None:
    """Parts of cores under `fullPCPUsOnly` are the exception, as without a resize."""
    for number in range(data.draw(st.integers(2, 6))):
        step(cluster, data.draw, number)
        try:
            spec = cluster.plan()
        except PolicyError:
            return
        _, found = mark_outdated(cluster.policy, spec, cluster.pods, edited=True)
        if not cluster.policy.spec.options.full_pcpus_only:
            assert found == ()


def whole_pod(name: str, level: str, cpus: list[str]) -> PodView:
    """A pod whose kubelet has granted resources of the pod as a whole."""
    amounts = {"cpu": level, "memory": "4Gi"}
    resources = {"requests": amounts, "limits": amounts}
    pod = granted_pod(name, *((each, "64Mi") for each in cpus), resources=resources)
    assert pod.pod_level is not None
    return replace(pod, pod_level=replace(pod.pod_level, granted=True))


def check_apart(topology: Topology, spec: NodeAssignmentSpec) -> None:
    """No CPU is given twice: only containers of one pod share, and then the same ones."""
    assert spec.pools is not None
    given = [one for one in spec.containers if one.cpus]
    for one, other in combinations(given, 2):
        if one.pod == other.pod and not (one.exclusive or other.exclusive):
            assert one.cpus == other.cpus
        else:
            assert one.cpus.isdisjoint(other.cpus)
    taken = CpuSet.union([one.cpus for one in given])
    assert spec.pools.shared.isdisjoint(taken)
    assert taken | spec.pools.shared | spec.pools.reserved == topology.online


@given(nodes(), st.data())
@settings(max_examples=100, deadline=None)
def test_pods_as_a_whole_that_are_resized_in_one_plan_get_no_cpu_twice(
    cluster: Cluster, data: Any
) -> None:
    """What one of them gives back, another one may get in the same plan."""
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=3))
    asked = st.sampled_from(["1", "2", "500m"])
    for _ in range(4):
        pods = [
            whole_pod(
                f"p{number}",
                data.draw(st.sampled_from(LEVELS)),
                data.draw(st.lists(asked, min_size=size, max_size=size)),
            )
            for number, size in enumerate(sizes)
        ]
        try:
            cluster.spec = plan_with(cluster.policy, cluster.spec, pods, NO_UIDS).spec
        except PolicyError:
            return
        check_apart(cluster.policy.topology, cluster.spec)
        again = plan_with(cluster.policy, cluster.spec, pods, NO_UIDS).spec
        assert again.to_wire() == cluster.spec.to_wire()


def test_a_younger_pod_binds_numa_nodes_together_and_an_edited_pod_fits() -> None:
    """Its memory fits on NUMA nodes 0 and 3; alone it is given one of them."""
    few = machine(6, numa_nodes=3, memory_bytes=64 * MIB)
    with_memory_only = replace(few, numa_nodes=(*few.numa_nodes, NumaNode(3, 192 * MIB)))
    reserved = [{"numaNode": numa_node, "memory": "32Mi"} for numa_node in range(4)]
    bound = policy(
        topology={"policy": "BestEffort", "scope": "Pod"},
        memory={"policy": "Static", "reserved": reserved},
    )
    cluster = Cluster(resolve(with_memory_only, bound))
    cluster.wishes["older"] = (("1", "64Mi"), ("1", "64Mi"))
    assert [one.pod for one in cluster.plan().refused] == ["older"]
    cluster.wishes["younger"] = (("1", "64Mi"),)
    placed = cluster.plan().containers
    assert [(one.pod, str(one.mems)) for one in placed] == [
        ("younger", "0,3"),
        ("older", "0,3"),
        ("older", "0,3"),
    ]


def test_containers_of_a_pod_as_a_whole_change_places() -> None:
    """One gets a CPU of its own out of what all of them share, and gives it back to them."""
    together = policy(topology={"policy": "BestEffort", "scope": "Pod"})
    cluster = Cluster(resolve(machine(8, threads=1), together))
    for cpus, wanted in (
        (["500m", "500m"], {"c0": ("1-4", False), "c1": ("1-4", False)}),
        (["500m", "1"], {"c0": ("1-3", False), "c1": ("4", True)}),
        (["1", "500m"], {"c0": ("4", True), "c1": ("1-3", False)}),
        (["1", "3"], {"c0": ("4", True), "c1": ("1-3", True)}),
    ):
        pods = [whole_pod("p", "4", cpus)]
        cluster.spec = plan_with(cluster.policy, cluster.spec, pods, NO_UIDS).spec
        found = {one.container: (str(one.cpus), one.exclusive) for one in cluster.spec.containers}
        assert found == wanted
        assert not cluster.spec.refused_resizes
