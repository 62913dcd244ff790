"""A refusal says where memory is free and why it cannot be had."""

from typing import Any

from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import plan_with, resolve
from support.values.placement import NO_UIDS, pod, policy

MIB = 1 << 20
SMALL = {"cpu": "1", "memory": "64Mi"}
BIG = SMALL | {"hugepages-2Mi": "48Mi"}


def container(name: str, amounts: dict[str, str]) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": amounts, "limits": amounts}}


def test_memory_that_is_free_for_its_group_alone_is_named() -> None:
    """No NUMA node has the huge pages of the init container, and both serve it together."""
    numa_nodes = (NumaNode(0, 192 * MIB, {"2Mi": 16}), NumaNode(1, 128 * MIB, {"2Mi": 16}))
    cpus = tuple(Cpu(cpu, cpu // 2 * 2, 0, NO_CACHE, cpu // 4) for cpu in range(6))
    rules = policy(
        options={"distributeCPUsAcrossNUMA": True},
        topology={"policy": "SingleNUMANode", "scope": "Pod"},
        memory={"policy": "Static"},
    )
    resolved = resolve(Topology(cpus=cpus, numa_nodes=numa_nodes), rules)
    spec = {"initContainers": [container("i0", BIG)], "containers": [container("c0", SMALL)]}
    spans = parse_pod({"metadata": {"name": "spans", "uid": "u0"}, "spec": spec})
    before = plan_with(resolved, None, [spans], NO_UIDS).spec
    more = pod("more", "2", memory="64Mi")
    (refusal,) = plan_with(resolved, before, [spans, more], NO_UIDS).spec.refused
    assert refusal.reason == "NotEnoughMemory"
    assert refusal.message.startswith(
        "wanted 64 MiB of memory, no NUMA nodes have so much but NUMA node 1, which serves "
        "containers of several NUMA nodes; "
    )
