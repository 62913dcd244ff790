"""The hardware that stand-ins for nodes report: captured machines, no two with equal memory."""

import tarfile
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from numapin_api.cpuset import CpuSet
from numapin_api.hardware.compact import compact_topology
from numapin_client.resources import Json
from numapin_enforcer.hardware.discovery import discover

CAPTURED = Path(__file__).parents[2] / "tests" / "machines"
NAMES = (
    "cascadelake-2s4n-smt2",
    "kunpeng920-2s4n-clusters",
    "knl-snc4-mcdram",
)
"""Machines with at least 64 CPUs, so that the pods of every node fit."""

PAGE_BYTES = 4096


@cache
def captured() -> tuple[Json, ...]:
    """What the enforcer reports of the machines of `NAMES`. Their archives take seconds to read."""
    found = []
    for name in NAMES:
        with tempfile.TemporaryDirectory(prefix="numapin-scale-") as folder:
            with tarfile.open(CAPTURED / f"{name}.tar.xz") as archive:
                # Python 3.11.3 and older do not know filters, 3.12 warns without one.
                archive.extraction_filter = getattr(tarfile, "data_filter", None)
                archive.extractall(folder)
            root = Path(folder, name)
            topology = discover(root / "sys", root / "proc")
        found.append(compact_topology(topology))
    return tuple(found)


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
