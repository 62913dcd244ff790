"""Which CPUs and memory a running container gets and gives back when it is resized."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_operator.placement import PodView, mark_outdated, plan_node, resolve
from support.values.placement import NO_UIDS, granted_pod, history, machine, pod, policy, resources

SMT = machine(16, numa_nodes=2)
"""Cores of neighbouring threads; CPUs 0-7 on NUMA node 0, 8-15 on 1."""

PLAIN = machine(16, threads=1, numa_nodes=2)


def a(*cpus: str, memory: str = "64Mi") -> PodView:
    return granted_pod("a", *((each, memory) for each in cpus))


def given(spec: NodeAssignmentSpec, name: str = "a") -> list[str]:
    return [str(one.cpus) for one in spec.containers if one.pod == name]


def reasons(spec: NodeAssignmentSpec) -> list[tuple[str, str | None, str]]:
    return [(one.pod, one.container, one.reason) for one in spec.refused_resizes or ()]


@pytest.mark.parametrize(
    ("sizes", "cpus"),
    [
        pytest.param(["2", "4"], "1-4", id="grow"),
        pytest.param(["6", "1"], "1", id="shrink"),
        pytest.param(["2", "4", "1"], "1", id="grow-and-shrink-keeps-the-first"),
        pytest.param(["2", "1", "3"], "1-3", id="shrink-and-grow"),
        pytest.param(["2", "10"], "1-10", id="grows-to-the-next-numa-node"),
    ],
)
def test_a_container_keeps_the_cpus_that_it_got_first(sizes: list[str], cpus: str) -> None:
    spec = history(PLAIN, policy(), *([a(size)] for size in sizes))
    assert given(spec) == [cpus]
    assert spec.pools is not None
    assert spec.pools.shared | spec.containers[0].cpus == PLAIN.online


def test_the_youngest_cpus_go_whatever_their_numbers() -> None:
    """The container grows below its first CPUs once its neighbour has ended."""
    neighbour = granted_pod("n", ("2", "64Mi"))
    spec = history(PLAIN, policy(), [neighbour, a("2")], [neighbour, a("2")], [a("6")])
    assert [str(one) for one in spec.containers[0].grants or ()] == ["3-4", "1-2,5-6"]
    assert given(history(PLAIN, policy(), [neighbour, a("2")], [a("6")], [a("2")])) == ["3-4"]


def test_a_container_that_was_never_resized_records_no_ages() -> None:
    assert history(PLAIN, policy(), [a("2")], [a("2")]).containers[0].grants is None


@pytest.mark.parametrize("around", ["1500m", "500m"])
def test_leaving_and_gaining_exclusivity(around: str) -> None:
    left = history(PLAIN, policy(), [a("2")], [a(around)])
    assert left.containers == ()
    assert left.pools is not None
    assert left.pools.shared == PLAIN.online
    assert given(history(PLAIN, policy(), [a("2")], [a(around)], [a("2")])) == ["1-2"]


def test_one_container_leaves_exclusivity_and_another_of_its_pod_grows() -> None:
    spec = history(PLAIN, policy(), [a("4", "2")], [a("1500m", "6")], [a("1", "6")])
    assert given(spec) == ["7", "1-6"]


def test_bound_memory_of_a_container_that_leaves_exclusivity_stays_bound() -> None:
    static = policy(memory={"policy": "Static"})
    spec = history(PLAIN, static, [a("2")], [a("1500m")])
    (entry,) = spec.containers
    assert (str(entry.cpus), str(entry.mems), entry.exclusive) == ("", "0", False)
    assert given(history(PLAIN, static, [a("2")], [a("1500m")], [a("3")])) == ["1-3"]


@pytest.mark.parametrize(
    ("topology", "grown", "reason"),
    [
        pytest.param({"policy": "None"}, "1-10", None, id="None"),
        pytest.param({"policy": "BestEffort"}, "1-10", None, id="BestEffort"),
        pytest.param({"policy": "Restricted"}, "1-10", None, id="Restricted"),
        pytest.param(
            {"policy": "SingleNUMANode"}, "1-2", "TopologyAffinityError", id="SingleNUMANode"
        ),
    ],
)
def test_growing_beyond_a_numa_node(
    topology: dict[str, str], grown: str, reason: str | None
) -> None:
    spec = history(PLAIN, policy(topology=topology), [a("2")], [a("10")])
    assert given(spec) == [grown]
    assert reasons(spec) == ([("a", "c0", reason)] if reason else [])


@pytest.mark.parametrize(
    ("topology", "memory", "why"),
    [
        ("SingleNUMANode", "None", ": 10 CPUs need 2 NUMA nodes;"),
        ("Restricted", "Static", ": 10 CPUs need 2 NUMA nodes, and its memory is bound to 1;"),
    ],
)
def test_cpus_that_need_more_numa_nodes_say_so(topology: str, memory: str, why: str) -> None:
    """More CPUs are free than it asks for, and no other container is there."""
    spec = policy(topology={"policy": topology}, memory={"policy": memory})
    after = history(PLAIN, spec, [a("2")], [a("10")])
    (waits,) = after.refused_resizes or ()
    assert waits.message.startswith(
        f"no NUMA nodes have 8 CPUs besides 1-2 as topology policy {topology} demands{why}"
    )


def test_a_number_of_numa_nodes_that_the_policy_allows_is_not_blamed() -> None:
    """Restricted allows two for 7 CPUs; the container has two, and CPUs are free on a third."""
    spec = policy(topology={"policy": "Restricted"}, reserved={"cpus": "0-1"})
    topology, other = machine(12, threads=1, numa_nodes=3), granted_pod("n", ("2", "64Mi"))
    after = history(topology, spec, [a("6"), other], [a("7"), other])
    (waits,) = after.refused_resizes or ()
    assert "topology policy Restricted demands;" in waits.message


def test_restricted_forbids_a_second_numa_node_that_an_empty_machine_would_not_need() -> None:
    neighbour = granted_pod("n", ("4", "64Mi"))
    restricted = policy(topology={"policy": "Restricted"})
    waits = history(PLAIN, restricted, [a("2"), neighbour], [a("4"), neighbour])
    assert (given(waits), reasons(waits)) == (["1-2"], [("a", "c0", "TopologyAffinityError")])
    assert "besides 1-2" in (waits.refused_resizes or ())[0].message
    later = plan_node(PLAIN, restricted, waits, [a("4")], NO_UIDS).spec
    assert (given(later), later.refused_resizes) == (["1-4"], None)


def test_first_cpus_are_on_one_numa_node_where_bound_memory_is_on_another() -> None:
    """Preferred gives up the NUMA node of the memory, not that the CPUs are on one."""
    fields = {"topology": {"policy": "SingleNUMANode"}, "memory": {"policy": "Preferred"}}
    small = PLAIN.numa_nodes[0]
    memory_on_1 = replace(
        PLAIN, numa_nodes=(replace(small, memory_bytes=64 << 20), PLAIN.numa_nodes[1])
    )
    others = [granted_pod("b", ("6", "1Gi"))]
    spec = history(
        memory_on_1, policy(**fields), [a("500m", memory="128Mi"), *others], [a("3"), *others]
    )
    (entry,) = (one for one in spec.containers if one.pod == "a")
    assert (str(entry.cpus), str(entry.mems)) == ("1-3", "1")


def test_a_grow_waits_and_is_granted_when_a_neighbour_ends() -> None:
    topology, neighbour = machine(4, threads=1), granted_pod("n", ("2", "64Mi"))
    waits = history(topology, policy(), [a("1"), neighbour], [a("2"), neighbour])
    assert (given(waits), reasons(waits)) == (["1"], [("a", "c0", "NotEnoughCPUs")])
    (refusal,) = waits.refused_resizes or ()
    assert (refusal.requested, refusal.message) == (
        "c0: 2 CPUs",
        "wanted 1 CPU, none free besides 1; free on NUMA node 0: 0 CPUs",
    )
    still = plan_node(topology, policy(), waits, [a("2"), neighbour], NO_UIDS).spec
    assert still.to_wire() == waits.to_wire()
    assert given(plan_node(topology, policy(), waits, [a("2")], NO_UIDS).spec) == ["1-2"]


def test_a_grow_comes_before_a_younger_pod() -> None:
    topology, neighbour = machine(4, threads=1), granted_pod("n", ("2", "64Mi"))
    waits = history(topology, policy(), [a("1"), neighbour], [a("2"), neighbour])
    younger = granted_pod("y", ("2", "64Mi"))
    spec = plan_node(topology, policy(), waits, [a("2"), younger], NO_UIDS).spec
    assert given(spec) == ["1-2"]
    assert [one.pod for one in spec.refused] == ["y"]


def test_what_one_gives_back_another_gets_at_once() -> None:
    topology, b = machine(8, threads=1), granted_pod("b", ("1", "64Mi"))
    grown = granted_pod("b", ("5", "64Mi"))
    spec = history(topology, policy(), [b, a("6")], [grown, a("2")])
    assert (given(spec, "b"), given(spec)) == (["1,4-7"], ["2-3"])


@pytest.mark.parametrize(
    ("sizes", "cpus", "reason"),
    [
        pytest.param(["2", "4"], "2-5", None, id="grow"),
        pytest.param(["6", "2"], "2-3", None, id="shrink"),
        pytest.param(["2", "3"], "2-3", "SMTAlignmentError", id="grow-by-half-a-core"),
        pytest.param(["6", "3"], "2-5", "SMTAlignmentError", id="shrink-by-half-a-core"),
        pytest.param(["2", "14"], "2-15", None, id="grow-to-all"),
        pytest.param(["2", "16"], "2-3", "SMTAlignmentError", id="grow-beyond-all"),
    ],
)
def test_whole_cores_only(sizes: list[str], cpus: str, reason: str | None) -> None:
    whole = policy(options={"fullPCPUsOnly": True})
    spec = history(SMT, whole, *([a(size)] for size in sizes))
    assert given(spec) == [cpus]
    assert reasons(spec) == ([("a", "c0", reason)] if reason else [])
    marked, found = mark_outdated(resolve(SMT, whole), spec, [a(sizes[-1])], edited=True)
    assert (marked, found) == (spec, ())


def test_the_shared_pool_keeps_its_last_cpu() -> None:
    strict = policy(reserved={"cpus": "0", "strict": True})
    spec = history(machine(4, threads=1), strict, [a("2")], [a("3")])
    assert (given(spec), reasons(spec)) == (["1-2"], [("a", "c0", "SharedPoolEmpty")])


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"deleting": True}, id="deleting"),
        pytest.param({"terminal": True}, id="terminal"),
        pytest.param({"problem": "spec: is odd"}, id="problem"),
        pytest.param({"claims_unknown": True}, id="claims-unknown"),
    ],
)
def test_a_pod_that_is_ending_or_unclear_is_not_resized(changed: dict[str, Any]) -> None:
    later = replace(a("4"), **changed)
    running = frozenset({later.uid})
    first = plan_node(PLAIN, policy(), None, [a("2")], NO_UIDS).spec
    assert plan_node(PLAIN, policy(), first, [later], running).spec.containers == first.containers


def test_only_what_the_kubelet_has_granted_counts() -> None:
    first = plan_node(PLAIN, policy(), None, [pod("a", "2")], NO_UIDS).spec
    assert plan_node(PLAIN, policy(), first, [pod("a", "4")], NO_UIDS).spec == first


def test_a_pod_that_the_policy_selects_no_more_shrinks_and_does_not_grow() -> None:
    first = plan_node(PLAIN, policy(), None, [a("4")], NO_UIDS).spec
    grown = plan_node(PLAIN, policy(), first, [replace(a("6"), selected=False)], NO_UIDS).spec
    assert grown == first
    less = plan_node(PLAIN, policy(), first, [replace(a("1"), selected=False)], NO_UIDS).spec
    assert given(less) == ["1"]


def test_an_init_container_that_leaves_its_cpus_to_others_delays_a_resize() -> None:
    init = [{"name": "i", "resources": resources("4")}]
    starting, wants = (granted_pod("a", (n, "64Mi"), initContainers=init) for n in ("2", "5"))
    first = plan_node(PLAIN, policy(), None, [starting], NO_UIDS).spec
    assert plan_node(PLAIN, policy(), first, [wants], NO_UIDS).spec == first
    ended = tuple(replace(one, ended=one.name == "i") for one in wants.containers)
    after = plan_node(PLAIN, policy(), first, [replace(wants, containers=ended)], NO_UIDS).spec
    assert given(after) == ["1-5"]


def test_a_refused_pod_is_tried_again_once_it_requests_less() -> None:
    topology = machine(4, threads=1)
    refused = plan_node(topology, policy(), None, [a("6")], NO_UIDS).spec
    assert [one.requested for one in refused.refused] == ["c0: 6000m CPU + 64 MiB memory"]
    spec = plan_node(topology, policy(), refused, [a("2")], NO_UIDS).spec
    assert (given(spec), spec.refused) == (["1-2"], ())


def test_no_younger_pod_decides_whether_an_edited_one_with_an_init_container_fits() -> None:
    """NUMA node 0 has a CPU for the init container, and no room for the rest."""
    aligned = policy(reserved={"cpus": "0-1"}, topology={"policy": "Restricted"})
    init = {"name": "i", "resources": resources("1")}
    edited = replace(pod("a", "3", initContainers=[init]), edited=True)
    pods = [pod("old", "1"), edited, pod("younger", "1")]
    first = plan_node(machine(8, 1, 2), aligned, None, pods, NO_UIDS).spec
    assert not first.refused
    assert given(first) == ["4", "4-6"]
    assert (given(first, "old"), given(first, "younger")) == (["2"], ["3"])
