from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_operator.placement.policy import resolve

GIB = 1 << 30


def test_memory_of_a_gpu_is_never_capacity() -> None:
    topology = Topology(
        cpus=tuple(Cpu(cpu, cpu, 0, 0, 0) for cpu in range(4)),
        numa_nodes=(
            NumaNode(0, 8 * GIB, {}, (10, 80)),
            NumaNode(1, 96 * GIB, {"2Mi": 4}, (80, 10), on_device=True),
        ),
    )
    policy = CpuPolicySpec.model_validate(
        {"reserved": {"count": 1}, "memory": {"policy": "Static"}}
    )
    assert resolve(topology, policy).capacity == {"memory": {0: 8 * GIB, 1: 0}}
