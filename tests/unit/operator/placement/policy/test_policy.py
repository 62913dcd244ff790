"""What a policy means on one machine, and what is wrong with one that cannot work there."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.cpuset import CpuSet
from numapin_api.quantity import whole
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_operator.placement import (
    PolicyError,
    SystemReservation,
    amounts,
    cpu_reservation_mismatch,
    plan_node,
    reservation_mismatch,
    resolve,
    with_reserved,
)
from support.values.placement import GIB, NO_UIDS, machine, policy


@pytest.mark.parametrize("reserved", [[], [{"numaNode": 1, "memory": "23Gi"}]])
def test_memory_of_a_gpu_is_never_capacity(reserved: list[dict[str, Any]]) -> None:
    topology = Topology(
        cpus=tuple(Cpu(cpu, cpu, 0, 0, 0) for cpu in range(4)),
        numa_nodes=(
            NumaNode(0, 8 * GIB, {}, (10, 80)),
            NumaNode(1, 96 * GIB, {"2Mi": 4}, (80, 10), on_device=True),
        ),
    )
    static = policy(memory={"policy": "Static", "reserved": reserved})
    assert resolve(topology, static).capacity == {"memory": {0: 8 * GIB, 1: 0}}


@pytest.mark.parametrize(("spread", "reserved"), [(False, "0,4"), (True, "0-1")])
def test_a_count_reserves_whole_cores_unless_cpus_are_spread(spread: bool, reserved: str) -> None:
    topology = Topology(
        cpus=tuple(Cpu(cpu, cpu % 4, 0, -1, 0) for cpu in range(8)),
        numa_nodes=(NumaNode(0, 8 * GIB),),
    )
    counted = policy(reserved={"count": 2}, options={"distributeCPUsAcrossCores": spread})
    pools = plan_node(topology, counted, None, (), NO_UIDS).spec.pools
    assert pools is not None
    assert str(pools.reserved) == reserved


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"reserved": {"cpus": "7-9"}}, "reserved.cpus: this machine has no online CPU 8-9"),
        ({"reserved": {"count": 9}}, "reserved.count: wanted 9 CPUs, 8 free"),
        ({"reserved": {"count": 8, "strict": True}}, "leaves no CPU for the shared pool"),
        (
            {"options": {"fullPCPUsOnly": True, "distributeCPUsAcrossCores": True}},
            "options.distributeCPUsAcrossCores: excludes options.fullPCPUsOnly",
        ),
        (
            {"options": {"alignBySocket": True}, "topology": {"policy": "SingleNUMANode"}},
            "conflicts with topology.policy SingleNUMANode: remove one",
        ),
        (
            {"memory": {"policy": "Static", "reserved": [{"numaNode": 3, "memory": "1Gi"}]}},
            r"memory.reserved\[0\].numaNode: this machine has no NUMA node 3, only 0",
        ),
        (
            {"memory": {"policy": "Static", "reserved": [{"numaNode": 0, "memory": "17Gi"}]}},
            r"memory.reserved\[0\]: memory: .* lower it",
        ),
    ],
)
def test_a_policy_that_cannot_work_says_which_field_and_why(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(PolicyError, match=message):
        plan_node(machine(), policy(**fields), None, [], NO_UIDS)


@pytest.mark.parametrize(
    ("reserved", "message"),
    [("1", r"every reserved CPU of this machine is offline \(1\)"), ("1,8", "no online CPU 8")],
)
def test_reserved_cpus_that_are_all_offline_or_missing_are_refused(
    reserved: str, message: str
) -> None:
    whole = machine()
    online = tuple(cpu for cpu in whole.cpus if cpu.id != 1)
    topology = replace(whole, cpus=online, offline=CpuSet([1]))
    with pytest.raises(PolicyError, match=message):
        resolve(topology, policy(reserved={"cpus": reserved}))


def test_without_reserved_cpus_the_node_s_own_reservation_is_rounded_up() -> None:
    unset, keeps = CpuPolicySpec(), SystemReservation
    assert with_reserved(unset, machine(), keeps(1500)).reserved.count == 2
    assert with_reserved(unset, machine(), keeps(0)).reserved.count == 1
    assert with_reserved(policy(), machine(), keeps(7000)) == policy()


@pytest.mark.parametrize(
    ("reserved", "kept_back", "said"),
    [
        pytest.param({"count": 2}, 1000, "2 CPUs reserved, and the Node keeps back 1 ", id="count"),
        pytest.param({"cpus": "0-2"}, 1500, "lack up to 1 exclusive CPU. Let the", id="list"),
        pytest.param({"cpus": "0-2"}, 1500, "keep back 3 (reservedSystemCPUs), or reserve 2 CPUs"),
        pytest.param({"count": 2}, 1001, "", id="as many, rounded up"),
        pytest.param({"count": 2}, 6000, "", id="fewer, the rest is shared"),
        pytest.param({}, 500, "", id="what the Node keeps back"),
        pytest.param({}, 0, "1 CPU reserved, and the Node keeps back 0 ", id="at least one"),
        pytest.param({}, -5, "keep back 1 (reservedSystemCPUs)", id="a Node that lies"),
    ],
)
def test_more_reserved_cpus_than_the_node_keeps_back_are_told(
    reserved: dict[str, Any], kept_back: int, said: str
) -> None:
    message = cpu_reservation_mismatch(
        policy(reserved=reserved), SystemReservation(kept_back), machine()
    )
    assert said in message
    assert bool(said) == bool(message)


def test_cpus_that_pods_may_not_use_count_as_reserved_and_offline_ones_do_not() -> None:
    """The capacity of the Node has the former, and not the latter."""
    whole = machine()
    used = tuple(cpu for cpu in whole.cpus if cpu.id not in (1, 6, 7))
    part = replace(whole, cpus=used, offline=CpuSet([1]), withheld=CpuSet([6, 7]))
    for reserved in ({"cpus": "0-1,6"}, {"count": 1}, {}):
        spec = policy(reserved=reserved)
        assert "3 CPUs reserved" in cpu_reservation_mismatch(spec, SystemReservation(2000), part)
        assert cpu_reservation_mismatch(spec, SystemReservation(3000), part) == ""
    assert cpu_reservation_mismatch(policy(mode="None"), SystemReservation(), part) == ""
    assert cpu_reservation_mismatch(policy(), SystemReservation(), None) == ""


def uneven() -> Topology:
    """NUMA nodes of 4 GiB and 12 GiB; 4 GiB of the second are huge pages."""
    cpus = tuple(Cpu(cpu, cpu, 0, -1, cpu // 4) for cpu in range(8))
    return Topology(cpus, (NumaNode(0, 4 * GIB), NumaNode(1, 12 * GIB, {"2Mi": 2048})))


def keeps_back(memory: int, **others: int) -> SystemReservation:
    return SystemReservation(1000, amounts({"memory": memory, **others}.items()))


@pytest.mark.parametrize("memory", ["Static", "Preferred", "SingleNUMA"])
def test_without_reserved_memory_that_of_the_node_is_kept_back_in_proportion(memory: str) -> None:
    system = keeps_back(3 * GIB, **{"hugepages-2Mi": GIB})
    resolved = resolve(uneven(), with_reserved(policy(memory={"policy": memory}), uneven(), system))
    assert resolved.capacity == {
        "memory": {0: 3 * GIB, 1: 6 * GIB},
        "hugepages-2Mi": {1: 3 * GIB},
    }


@given(
    st.lists(st.integers(0, 1 << 44), min_size=1, max_size=9),
    st.integers(0, 1 << 48),
)
def test_what_is_kept_back_adds_up_and_no_numa_node_owes_more_than_it_has(
    sizes: list[int], memory: int
) -> None:
    numa_nodes = tuple(NumaNode(index, size) for index, size in enumerate(sizes))
    topology = Topology((Cpu(0, 0, 0, -1, 0), Cpu(1, 1, 0, -1, 0)), numa_nodes)
    static = with_reserved(policy(memory={"policy": "Static"}), topology, keeps_back(memory))
    left = sum(resolve(topology, static).capacity["memory"].values())
    assert 0 <= sum(sizes) - min(memory, sum(sizes)) - left < 4096


def test_memory_that_the_policy_reserves_is_compared_with_the_node() -> None:
    named = {"policy": "Static", "reserved": [{"numaNode": 0, "memory": "1Gi"}]}
    static = policy(memory=named)
    assert with_reserved(static, uneven(), keeps_back(2 * GIB)) == static
    assert reservation_mismatch(static, keeps_back(GIB)) == ""
    assert reservation_mismatch(static, SystemReservation()) == ""
    assert reservation_mismatch(static, keeps_back(2 * GIB)) == (
        "memory.reserved adds up to 1Gi of memory, and the Node keeps back 2Gi (capacity less "
        "allocatable); make them equal, or remove memory.reserved"
    )
    assert "0 of hugepages-2Mi, and the Node keeps back 1Gi" in reservation_mismatch(
        static, keeps_back(GIB, **{"hugepages-2Mi": GIB})
    )


@pytest.mark.parametrize("kept_back", ["6244Mi", "6393852Ki", "6547304449"])
def test_what_the_node_keeps_back_can_be_written_into_the_policy(kept_back: str) -> None:
    """Rounded, each is 6.1 GiB, and so is what the policy reserves."""

    def reserving(memory: str) -> CpuPolicySpec:
        return policy(memory={"policy": "Static", "reserved": [{"numaNode": 0, "memory": memory}]})

    system = keeps_back(whole(kept_back))
    said = reservation_mismatch(reserving("6.1Gi"), system)
    shown = said.split("keeps back ")[1].split(" ")[0]
    assert reservation_mismatch(reserving(shown), system) == ""


def test_a_policy_that_binds_no_memory_keeps_none_back() -> None:
    assert with_reserved(policy(), uneven(), keeps_back(3 * GIB)) == policy()
    assert reservation_mismatch(policy(), keeps_back(3 * GIB)) == ""
