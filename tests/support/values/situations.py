"""Random machines, policies and pods."""

from typing import Any

from hypothesis import strategies as st

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.topology import Cpu, NumaNode, Topology

MIB = 1 << 20


@st.composite
def machines(draw: st.DrawFn, hybrid: bool = False) -> Topology:
    """Sockets, sparse NUMA nodes, caches and cores of all sorts, some of a single thread."""
    ids = draw(st.lists(st.integers(0, 90), min_size=1, max_size=4, unique=True).map(sorted))
    cpus: list[Cpu] = []
    for index, node in enumerate(ids):
        for core in range(draw(st.integers(1, 4))):
            threads = draw(st.integers(1, 2)) if hybrid else 2
            first = len(cpus)
            cache = draw(st.sampled_from([-1, node, core // 2 + 8 * index]))
            socket = draw(st.sampled_from([0, index // 2, index]))
            cpus += [Cpu(first + t, first, socket, cache, node) for t in range(threads)]
    with_memory_only = draw(st.booleans())
    nodes = [*ids, *([max(ids) + 1] if with_memory_only else [])]
    sizes = {node: draw(st.integers(1, 64)) * 64 * MIB for node in nodes}
    return Topology(
        cpus=tuple(cpus),
        numa_nodes=tuple(NumaNode(node, sizes[node], {"2Mi": 16}) for node in nodes),
    )


@st.composite
def policies(draw: st.DrawFn, topology: Topology) -> CpuPolicySpec:
    options = draw(
        st.sampled_from(
            [
                {},
                {"fullPCPUsOnly": True},
                {"distributeCPUsAcrossNUMA": True},
                {"fullPCPUsOnly": True, "distributeCPUsAcrossNUMA": True},
                {"distributeCPUsAcrossCores": True},
                {"preferAlignCPUsByUncoreCache": True},
            ]
        )
    )
    few = max(1, len(topology.cpus) // 3)
    return CpuPolicySpec.model_validate(
        {
            "reserved": {"count": draw(st.integers(1, few)), "strict": draw(st.booleans())},
            "options": options,
            "topology": {
                "policy": draw(
                    st.sampled_from(["None", "BestEffort", "Restricted", "SingleNUMANode"])
                ),
                "scope": draw(st.sampled_from(["Container", "Pod"])),
                "preferClosestNUMANodes": draw(st.booleans()),
            },
            "placement": {"numaNodes": draw(st.sampled_from(["None", "None", "Packed", "Spread"]))},
            "memory": {
                "policy": draw(st.sampled_from(["None", "Static", "Preferred", "SingleNUMA"])),
            },
        }
    )


def _resources(draw: st.DrawFn) -> dict[str, Any]:
    amounts = {
        "cpu": draw(st.sampled_from(["1", "1", "2", "2", "3", "4", "6", "500m"])),
        "memory": draw(st.sampled_from(["64Mi", "256Mi", "1Gi", "3Gi"])),
    }
    if draw(st.integers(0, 5)) == 0:
        amounts["hugepages-2Mi"] = draw(st.sampled_from(["8Mi", "32Mi", "48Mi"]))
    return {"requests": amounts, "limits": dict(amounts)}


@st.composite
def pod_objects(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Pods with init containers and sidecars, some with resources of their own."""
    made = []
    for number in range(draw(st.integers(1, 5))):
        init = [
            {"name": f"i{index}", "resources": _resources(draw)}
            | ({"restartPolicy": "Always"} if draw(st.booleans()) else {})
            for index in range(draw(st.integers(0, 2)))
        ]
        apps = [
            {"name": f"c{index}", "resources": _resources(draw)}
            for index in range(draw(st.integers(1, 2)))
        ]
        spec: dict[str, Any] = {"initContainers": init, "containers": apps}
        if draw(st.integers(0, 4)) == 0:
            whole = {"cpu": draw(st.sampled_from(["4", "6", "8"])), "memory": "4Gi"}
            spec["resources"] = {"requests": whole, "limits": whole}
        made.append({"metadata": {"name": f"p{number}", "uid": f"u{number}"}, "spec": spec})
    return made


@st.composite
def situations(
    draw: st.DrawFn, hybrid: bool = False
) -> tuple[Topology, CpuPolicySpec, list[dict[str, Any]]]:
    topology = draw(machines(hybrid=hybrid))
    return topology, draw(policies(topology)), draw(pod_objects())


Situation = tuple[Topology, CpuPolicySpec, list[dict[str, Any]]]
