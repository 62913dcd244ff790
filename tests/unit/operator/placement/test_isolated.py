"""CPUs that the kernel isolates: like any other, or for exclusive containers alone."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_operator.placement import PodView, PolicyError, plan_node, resolve
from support.values.placement import NO_UIDS, machine, pod, policy


def isolating(cpus: str, **layout: int) -> Topology:
    return replace(machine(**layout), isolated=CpuSet.parse(cpus))


def planned(on: Topology, /, *pods: PodView, **fields: Any) -> NodeAssignmentSpec:
    ours = policy(**{"isolatedCPUs": "ExclusiveOnly"} | fields)
    return plan_node(on, ours, None, pods, NO_UIDS).spec


def placed(spec: NodeAssignmentSpec) -> tuple[dict[str, str], str]:
    """Each pod's CPUs, and the shared pool."""
    assert spec.pools is not None
    return {entry.pod: str(entry.cpus) for entry in spec.containers}, str(spec.pools.shared)


def test_by_default_isolated_cpus_are_like_any_other() -> None:
    spec = planned(isolating("2-3,6-7"), pod("a", "2"), isolatedCPUs="Ignore")
    assert placed(spec) == ({"a": "2-3"}, "0-1,4-7")
    assert plan_node(machine(), policy(), None, [pod("a", "2")], NO_UIDS).spec == spec


def test_exclusive_containers_get_isolated_cpus_first_and_nothing_shares_them() -> None:
    topology = isolating("6-7")
    assert placed(planned(topology)) == ({}, "0-5")
    assert placed(planned(topology, pod("a", "2"))) == ({"a": "6-7"}, "0-5")
    assert placed(planned(topology, pod("a", "2"), pod("b", "2"))) == (
        {"a": "6-7", "b": "2-3"},
        "0-1,4-5",
    )


@pytest.mark.parametrize(
    ("count", "cpus"),
    [("1", "6"), ("2", "6-7"), ("3", "1-3"), ("5", "1-5"), ("7", "1-7")],
)
def test_the_two_kinds_are_mixed_only_if_neither_suffices(count: str, cpus: str) -> None:
    assert placed(planned(isolating("6-7"), pod("a", count)))[0] == {"a": cpus}


def test_cpus_are_mixed_before_the_shared_pool_is_emptied() -> None:
    strict = {"cpus": "0", "strict": True}
    spec = planned(isolating("6-7"), pod("a", "5"), reserved=strict)
    assert placed(spec) == ({"a": "1-3,6-7"}, "4-5")


def test_isolated_cpus_that_a_container_leaves_are_not_shared() -> None:
    topology, ours = isolating("6-7"), policy(isolatedCPUs="ExclusiveOnly")
    before = plan_node(topology, ours, None, [pod("a", "2")], NO_UIDS).spec
    assert placed(plan_node(topology, ours, before, [], NO_UIDS).spec) == ({}, "0-5")


def test_a_count_of_reserved_cpus_is_not_taken_from_isolated_ones() -> None:
    spec = planned(isolating("0-3"), reserved={"count": 2})
    assert spec.pools is not None
    assert (str(spec.pools.reserved), str(spec.pools.shared)) == ("4-5", "4-7")
    with pytest.raises(PolicyError, match=r"reserved.count: wanted 5 CPUs, 4 free"):
        planned(isolating("0-3"), reserved={"count": 5})


def test_reserved_isolated_cpus_are_neither_shared_nor_given_out() -> None:
    spec = planned(isolating("0,6-7"), pod("a", "2"), pod("b", "1"))
    assert placed(spec) == ({"a": "6-7", "b": "1"}, "2-5")


def test_whole_cores_are_not_put_together_from_isolated_halves() -> None:
    spec = planned(isolating("3,5-7"), pod("a", "2"), options={"fullPCPUsOnly": True})
    assert placed(spec)[0] == {"a": "6-7"}
    spec = planned(isolating("3,5"), pod("a", "2"), options={"fullPCPUsOnly": True})
    assert placed(spec)[0] == {"a": "6-7"}


def test_alignment_comes_before_isolation() -> None:
    """NUMA node 1 alone has three CPUs, of which one is isolated."""
    topology = isolating("0-2,7", threads=1, numa_nodes=2)
    single = {"policy": "SingleNUMANode"}
    spec = planned(topology, pod("a", "4"), reserved={"cpus": "3"}, topology=single)
    assert placed(spec)[0] == {"a": "4-7"}


@pytest.mark.parametrize(
    ("isolated", "fields", "message"),
    [
        ("0-7", {}, r"isolatedCPUs: the kernel isolates every CPU of this machine \(0-7\)"),
        ("1-7", {"reserved": {"cpus": "0", "strict": True}}, "leaves no CPU for the shared pool"),
    ],
)
def test_a_machine_without_cpus_for_the_shared_pool(
    isolated: str, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(PolicyError, match=message):
        planned(isolating(isolated), **fields)


@given(
    st.sets(st.integers(0, 7), max_size=7),
    st.lists(st.integers(1, 4), max_size=5),
    st.booleans(),
    st.booleans(),
)
def test_no_isolated_cpu_is_ever_shared(
    isolated: set[int], counts: list[int], strict: bool, whole: bool
) -> None:
    topology = replace(machine(), isolated=CpuSet(isolated))
    ours = policy(
        isolatedCPUs="ExclusiveOnly",
        reserved={"cpus": "0", "strict": strict},
        options={"fullPCPUsOnly": whole},
    )
    pods = [pod(f"p{index}", str(count)) for index, count in enumerate(counts)]
    try:
        resolve(topology, ours)
    except PolicyError:
        return
    spec = plan_node(topology, ours, None, pods, NO_UIDS).spec
    assert spec.pools is not None
    assert spec.pools.shared
    assert not spec.pools.shared & CpuSet(isolated)
    ended = plan_node(topology, ours, spec, [], NO_UIDS).spec
    assert ended.pools == plan_node(topology, ours, None, [], NO_UIDS).spec.pools
