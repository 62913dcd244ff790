"""How much work a pod is: it grows with its containers, not with their square."""

import pytest

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_operator.placement import ContainerKind, ContainerView, PodView, plan_node
from numapin_operator.placement.allocations import Block
from numapin_operator.placement.memorymanager.tables import MemoryTables

MACHINE = Topology(
    tuple(Cpu(cpu, cpu, 0, 0, cpu // 2) for cpu in range(4)),
    (NumaNode(0, 8 << 30), NumaNode(1, 8 << 30)),
)


@pytest.mark.parametrize("policy", ["Static", "Preferred", "SingleNUMA"])
def test_memory_of_init_containers_is_bound_in_linear_work(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assigned = 0
    assign = MemoryTables.assign

    def counted(tables: MemoryTables, block: Block) -> None:
        nonlocal assigned
        assigned += 1
        assign(tables, block)

    def work_of(init_containers: int) -> int:
        nonlocal assigned
        assigned = 0
        spec = CpuPolicySpec.model_validate(
            {"reserved": {"count": 1}, "memory": {"policy": policy}}
        )
        plan = plan_node(MACHINE, spec, None, [pod_with(init_containers)], frozenset())
        assert len(plan.spec.containers) == init_containers + 1
        return assigned

    monkeypatch.setattr(MemoryTables, "assign", counted)
    assert work_of(80) < 3 * work_of(40)


def pod_with(init_containers: int) -> PodView:
    memory = (("memory", 1 << 20),)
    containers = [
        ContainerView(f"init-{index}", ContainerKind.INIT, 1000, memory, matched=True)
        for index in range(init_containers)
    ]
    main = ContainerView("main", ContainerKind.APP, 1000, memory, matched=True)
    return PodView("uid", "default", "pod", "Guaranteed", (*containers, main))
