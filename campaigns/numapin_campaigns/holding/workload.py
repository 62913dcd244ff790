"""The machine and the pods of a run: random, and the same for the same seed."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from numapin_lab.played.machines import TWO_NUMA_NODES, cpu_count

Json = dict[str, Any]

CPUS: Final = cpu_count(TWO_NUMA_NODES)
"""Of a node, in two NUMA nodes; one CPU is reserved."""

RULES: Final[Json] = {"reserved": {"count": 1}, "topology": {"policy": "SingleNUMANode"}}
"""What kubelets and policies demand alike."""

SIZES: Final = range(1, 8)
"""CPUs that a pod asks for: each fits one NUMA node, also that with the reserved CPU."""

OF: Final = "numapin.io/of"
"""The label that names the planned pod; its name is another one after each refusal."""

NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Planned:
    """A pod: when it is created, and for how long it runs once it is bound."""

    name: str
    cpus: int
    at_seconds: float
    runs_seconds: float

    def body(self, attempt: int) -> Json:
        """The pod of its first, second, ... attempt, which is Guaranteed."""
        name = self.name if attempt == 1 else f"{self.name}-{attempt}"
        amount = {"cpu": str(self.cpus), "memory": f"{self.cpus}Gi"}
        resources = {"requests": amount, "limits": amount}
        container: dict[str, Any] = {"name": "main", "image": "none", "resources": resources}
        metadata = {"name": name, "namespace": NAMESPACE, "labels": {OF: self.name}}
        return {"metadata": metadata, "spec": {"containers": [container]}}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a seed decides.

    Attributes:
        nodes: how many nodes there are.
        load: the share of the CPUs that can be given away which pods ask for on average.
        pods: in the order of their creation.
    """

    seed: int
    nodes: int
    load: float
    pods: Sequence[Planned]


def plan(seed: int, pods: int, nodes: int, load: float, runs_seconds: float) -> Plan:
    """Pods that come at random times, and run for half to one and a half of `runs_seconds`."""
    rng = random.Random(seed)
    mean_cpus = sum(SIZES) / len(SIZES)
    per_second = load * nodes * (CPUS - 1) / (mean_cpus * runs_seconds)
    found, at = [], 0.0
    for number in range(pods):
        at += rng.expovariate(per_second)
        runs = rng.uniform(0.5, 1.5) * runs_seconds
        found.append(Planned(f"pod-{number:04d}", rng.choice(SIZES), at, runs))
    return Plan(seed, nodes, load, found)
