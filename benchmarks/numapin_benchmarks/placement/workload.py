"""Machines, policies and sequences of pods for both planners; the same on every run."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]

GIB: Final = 1 << 30
_SEED: Final = 20260

POLICIES: Final[dict[str, Json]] = {
    "packed": {},
    "whole cores, distributed": {
        "options": {"fullPCPUsOnly": True, "distributeCPUsAcrossNUMA": True},
        "topology": {"policy": "BestEffort", "scope": "Container"},
    },
    "uncore caches, restricted, memory": {
        "options": {"preferAlignCPUsByUncoreCache": True},
        "topology": {"policy": "Restricted", "scope": "Container"},
        "memory": {"policy": "Static", "reserved": [{"numaNode": 0, "memory": "1Gi"}]},
    },
    "single NUMA node, pod scope, memory": {
        "topology": {"policy": "SingleNUMANode", "scope": "Pod"},
        "memory": {"policy": "Static", "reserved": [{"numaNode": 0, "memory": "1Gi"}]},
    },
}
"""Policies by name, as in a CpuPolicy; reserved CPUs are added for each machine."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A regular machine: `cores` of two threads in each NUMA node, `caches` L3 in each."""

    sockets: int
    numa_nodes: int
    cores: int
    caches: int = 1

    @property
    def cpus(self) -> int:
        """The number of logical CPUs."""
        return self.numa_nodes * self.cores * 2

    @property
    def name(self) -> str:
        """Such as `448 CPUs, 8 NUMA nodes`."""
        nodes = f"{self.numa_nodes} NUMA node" + ("s" if self.numa_nodes > 1 else "")
        return f"{self.cpus} CPUs, {nodes}"

    def document(self) -> Json:
        """The machine in the format of `numapin topology -o json`; siblings are far apart."""
        total = self.numa_nodes * self.cores
        rows = []
        for core in range(total):
            node = core // self.cores
            cache = node * self.caches + core % self.cores * self.caches // self.cores
            socket = node * self.sockets // self.numa_nodes
            rows += [[cpu, core, socket, cache, node] for cpu in (core, core + total)]
        nodes = [
            {
                "id": node,
                "memoryBytes": 64 * GIB,
                "hugepages": {},
                "distances": [10 if other == node else 21 for other in range(self.numa_nodes)],
            }
            for node in range(self.numa_nodes)
        ]
        return {"cpus": sorted(rows), "numaNodes": nodes}


SHAPES: Final = (
    Shape(1, 1, 4),
    Shape(2, 2, 16, 2),
    Shape(2, 4, 16, 2),
    Shape(2, 8, 16, 2),
    Shape(2, 8, 28, 4),
)
"""From a laptop to two sockets of 112 cores each."""


def scenario(name: str, shape: Shape, policy: Json, steps: int) -> Json:
    """Steps that add pods, and remove some when the machine is nearly full."""
    chance = random.Random(f"{_SEED} {shape} {sorted(policy)}")
    reserved = {"count": max(1, shape.cpus // 32)}
    return {
        "name": name,
        "policy": {"reserved": reserved} | policy,
        "steps": list(_steps(chance, shape, steps)),
    }


def _steps(chance: random.Random, shape: Shape, count: int) -> Iterator[Json]:
    present: dict[str, int] = {}
    budget = shape.cpus - max(1, shape.cpus // 32)
    for number in range(count):
        sizes = [chance.choice((1, 2, 2, 4, 4, 8, 16)) for _ in range(chance.choice((1, 1, 2)))]
        while present and sum(present.values()) + sum(sizes) > budget * 0.9:
            gone = chance.choice(sorted(present))
            del present[gone]
            yield {"remove": gone}
        if sum(sizes) > budget * 0.9:
            sizes = [1]
        uid = f"u{number}"
        present[uid] = sum(sizes)
        yield {"add": _pod(uid, sizes, chance)}


def _pod(uid: str, sizes: list[int], chance: random.Random) -> Json:
    containers = []
    for index, cpus in enumerate(sizes):
        amounts = {"cpu": str(cpus), "memory": f"{chance.choice((256, 512, 1024))}Mi"}
        resources = {"requests": amounts, "limits": amounts}
        containers.append({"name": f"c{index}", "resources": resources})
    metadata = {"name": uid, "namespace": "default", "uid": uid}
    return {"metadata": metadata, "spec": {"containers": containers}}
