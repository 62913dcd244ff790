"""Captured machines; played nodes report them as their hardware, no two with equal memory."""

import tarfile
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from numapin_api.cpuset import CpuSet
from numapin_api.hardware.compact import compact_topology
from numapin_api.topology import Topology
from numapin_client.resources import Json
from numapin_enforcer.hardware.discovery import discover

CAPTURED = Path(__file__).parents[3] / "tests" / "machines"
ENDING = ".tar.xz"
NAMES = (
    "cascadelake-2s4n-smt2",
    "kunpeng920-2s4n-clusters",
    "knl-snc4-mcdram",
)
"""Machines with at least 64 CPUs, so that the pods of every node fit."""

PAGE_BYTES = 4096
GIB = 1 << 30

TWO_NUMA_NODES: Json = {
    "cores": [str(cpu) for cpu in range(16)],
    "numaNodes": [
        {"id": at, "cpus": f"{8 * at}-{8 * at + 7}", "memoryBytes": 32 * GIB, "distances": row}
        for at, row in enumerate(([10, 20], [20, 10]))
    ],
    "sockets": [{"id": at, "cpus": f"{8 * at}-{8 * at + 7}"} for at in range(2)],
    "uncoreCaches": [{"id": at, "cpus": f"{8 * at}-{8 * at + 7}"} for at in range(2)],
}
"""What the enforcer reports of a machine of 16 CPUs, 8 on each of its NUMA nodes."""


def captured_names() -> list[str]:
    """The names of all captured machines."""
    return sorted(path.name.removesuffix(ENDING) for path in CAPTURED.glob(f"*{ENDING}"))


def unpack(name: str, folder: Path) -> Path:
    """Unpack a captured machine; returns its root, which has `sys` and `proc`."""
    with tarfile.open(CAPTURED / f"{name}{ENDING}") as archive:
        # Python 3.11.3 and older do not know filters, 3.12 warns without one.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)
    return folder / name


def captured_topology(name: str) -> Topology:
    """What the enforcer discovers on a captured machine. Its archive takes a second to read."""
    with tempfile.TemporaryDirectory(prefix="numapin-machine-") as folder:
        root = unpack(name, Path(folder))
        return discover(root / "sys", root / "proc")


@cache
def captured() -> tuple[Json, ...]:
    """What the enforcer reports of the machines of `NAMES`."""
    return tuple(compact_topology(captured_topology(name)) for name in NAMES)


def cpu_count(machine: Json) -> int:
    """How many CPUs a machine has."""
    return len(CpuSet.union(CpuSet.parse(one["cpus"]) for one in machine["numaNodes"]))


def reported(machines: Sequence[Json], number: int) -> Json:
    """`status.topology` of node `number`.

    The kernel keeps some memory for itself, a little more or less on each machine; so no two nodes
    of a real cluster report equal topologies, and nothing may rely on that.
    """
    machine = machines[number % len(machines)]
    nodes = [
        one | {"memoryBytes": max(0, one["memoryBytes"] - number * PAGE_BYTES)}
        for one in machine["numaNodes"]
    ]
    return machine | {"numaNodes": nodes}
