"""The containers of one node, and one more placed with each write. Does no I/O."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from numapin_api.cpuset import CpuSet
from numapin_api.hardware.compact import compact_topology
from numapin_api.topology import Cpu, NumaNode, Topology

Json = dict[str, Any]

RESERVED = 2
SOCKET_BYTES = 1 << 38
CREATED = "2026-01-01T00:00:00Z"


def cpus_for(count: int) -> int:
    """CPUs of a usual machine on which `count` containers have two CPUs each."""
    return next(size for size in (64, 256, 512, 1024) if size >= 2 * (count + RESERVED))


def two_sockets(cpus: int) -> Topology:
    """A usual machine: two sockets, a NUMA node each, and two threads on a core."""
    cores = cpus // 2
    half = cores // 2
    found = tuple(
        Cpu(id=one, core=core, socket=core // half, uncore_cache=core // 8, numa_node=core // half)
        for one in range(2 * cores)
        for core in (one % cores,)
    )
    nodes = tuple(NumaNode(number, SOCKET_BYTES) for number in range(2))
    return Topology(found, nodes)


def topology(count: int) -> Topology:
    """The machine of a node with so many containers."""
    return two_sockets(cpus_for(count))


def hardware(count: int) -> Json:
    """`status.topology` of that machine."""
    return compact_topology(topology(count))


@dataclass(frozen=True, slots=True)
class Entry:
    """One container with two exclusive CPUs, a core, and memory on their NUMA node.

    Attributes:
        number: of its pod, unique in a run.
        count: how many containers its node has; `number` modulo it is its place on the node.
    """

    number: int
    count: int

    @property
    def uid(self) -> str:
        """The UID of the pod."""
        return f"{self.number:08x}-1111-4111-8111-{self.number * 7919:012x}"

    @property
    def namespace(self) -> str:
        """The namespace of the pod."""
        return "trading-systems"

    @property
    def pod(self) -> str:
        """The name of the pod, as a ReplicaSet makes it."""
        return f"matching-engine-{self.number % 7}-5d59d67564-x{self.number:04d}"

    @property
    def cpus(self) -> str:
        """Its CPUs as a kernel list."""
        core = RESERVED + self.number % self.count
        return f"{core},{core + cpus_for(self.count) // 2}"

    @property
    def mems(self) -> str:
        """Its NUMA node."""
        cores = cpus_for(self.count) // 2
        return str(2 * (RESERVED + self.number % self.count) // cores)

    def line(self, generation: int) -> str:
        """The entry as one line that people read, names first and the UID last."""
        return (
            f"{self.namespace}/{self.pod} engine cpus={self.cpus} mems={self.mems} "
            f"memory={self.mems}:1Gi since={generation} uid={self.uid}"
        )


def placed(count: int, step: int) -> Iterator[Entry]:
    """The containers of a node after `step` pods that came while the oldest ones ended."""
    return (Entry(number, count) for number in range(step, step + count))


def shared(count: int) -> str:
    """The shared pool beside `count` containers."""
    half = cpus_for(count) // 2
    parts = (CpuSet(range(start, start + half)) for start in (0, half))
    taken = CpuSet.union(CpuSet.parse(one.cpus) for one in placed(count, 0))
    return str(CpuSet.union(parts) - taken)


def reserved(count: int) -> str:
    """The reserved CPUs: one core."""
    return f"0,{cpus_for(count) // 2}"


def conditions(generation: int) -> list[Json]:
    """The conditions of a healthy node."""
    reasons = {"Ready": "Enforced", "Reconciling": "Settled", "Stalled": "NotStalled"}
    return [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "reason": reason,
            "message": "",
            "observedGeneration": generation,
            "lastTransitionTime": CREATED,
        }
        for kind, reason in reasons.items()
    ]
