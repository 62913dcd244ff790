"""What a policy means on one machine, and what is wrong with one that cannot work there."""

from typing import Any

import pytest

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_operator.placement import PolicyError, plan_node, resolve, with_reserved
from support.values.placement import GIB, NO_UIDS, machine, policy


def test_memory_of_a_gpu_is_never_capacity() -> None:
    topology = Topology(
        cpus=tuple(Cpu(cpu, cpu, 0, 0, 0) for cpu in range(4)),
        numa_nodes=(
            NumaNode(0, 8 * GIB, {}, (10, 80)),
            NumaNode(1, 96 * GIB, {"2Mi": 4}, (80, 10), on_device=True),
        ),
    )
    static = policy(memory={"policy": "Static"})
    assert resolve(topology, static).capacity == {"memory": {0: 8 * GIB, 1: 0}}


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


def test_without_reserved_cpus_the_node_s_own_reservation_is_rounded_up() -> None:
    unset = CpuPolicySpec()
    assert with_reserved(unset, 8000, 6500).reserved.count == 2
    assert with_reserved(unset, 8000, 8000).reserved.count == 1
    assert with_reserved(policy(), 8000, 1000) == policy()
