"""NUMA nodes whose memory belongs to a GPU, on machines as NVIDIA's firmware describes them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from numapin_api.cpuset import MemSet
from numapin_enforcer.hardware.discovery import discover
from numapin_enforcer.hardware.hotplug import Machine

Files = dict[str, str | bytes | None]
WriteFiles = Callable[[Path, Files], None]

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"
GIB = 1 << 30


@dataclass(frozen=True)
class Described:
    """A machine: its NUMA nodes with CPUs are the first ones, with one CPU each.

    Of the others, `far` are distances to those with CPUs, if not 80.
    """

    gib: tuple[int, ...]
    with_cpus: int
    gpus: tuple[str, ...]
    on_device: str
    initiators: str | None = None
    far: tuple[tuple[int, int], ...] = ()
    offline: str = ""

    def files(self) -> Files:
        nodes = MemSet(range(len(self.gib))) - MemSet.parse(self.offline)
        files: Files = {
            f"{CPU}/online": f"0-{self.with_cpus - 1}",
            f"{NODE}/online": f"{nodes}",
        }
        for node in nodes:
            folder, cpu = f"{NODE}/node{node}", node < self.with_cpus
            files[f"{folder}/cpumap"] = f"{1 << node:x}" if cpu else "0"
            files[f"{folder}/meminfo"] = f"Node {node} MemTotal: {self.gib[node] << 20} kB"
            files[f"{folder}/distance"] = " ".join(str(self._distance(node, one)) for one in nodes)
            if cpu:
                files[f"{CPU}/cpu{node}/topology/physical_package_id"] = f"{node}"
        if self.initiators is not None:
            files[f"{NODE}/has_generic_initiator"] = self.initiators
        return files | gpu_files(*self.gpus)

    def _distance(self, one: int, other: int) -> int:
        if one == other:
            return 10
        if max(one, other) < self.with_cpus:
            return 40
        if min(one, other) >= self.with_cpus:
            return 11
        return dict(self.far).get(max(one, other), 80)


def gpu_files(*nodes: str) -> Files:
    """What the driver says of each GPU: its NUMA node, and the state of its memory."""
    return {
        f"proc/driver/nvidia/gpus/{number:04x}:01:00.0/numa_status": f"Node:      {node}\nStatus: x"
        for number, node in enumerate(nodes)
    }


MIG = (480, 0, 23, 23, 46, 0, 0, 0, 0)
MACHINES = {
    "Grace Hopper, the whole GPU": Described((480, 92, *[0] * 7), 1, ("1",), "1-8"),
    "Grace Hopper, three instances": Described(MIG, 1, ("1",), "1-8"),
    "Grace Hopper, three instances, empty nodes are offline": Described(
        MIG, 1, ("1",), "2-4", offline="1,5-8"
    ),
    "Grace Hopper, firmware lists the nodes": Described(MIG, 1, ("1",), "1-8", "1-8"),
    "Grace Hopper, the driver names no node": Described(MIG, 1, ("-1",), "1-8", "1-8"),
    "Grace Hopper, no driver": Described(MIG, 1, (), "1-8", "1-8"),
    "Grace Hopper, no driver, and firmware lists nothing": Described(MIG, 1, (), "", ""),
    "Grace Hopper, the driver manages the memory": Described((480,), 1, ("-1",), "", "\n"),
    "two GB200 with instances of both, empty nodes are offline": Described(
        (480, 480, 0, 90, 90, *[0] * 5, 0, 0, 90, 46, *[0] * 4, 256),
        2,
        ("2", "10"),
        "3-4,12-13",
        offline="2,5-11,14-17",
    ),
    "two GB200 with instances of one": Described(
        (480, 480, 186, *[0] * 7, 0, 0, 90, 90, *[0] * 4), 2, ("2", "10"), "2-17"
    ),
    "four GPUs, whose nodes are listed in another order": Described(
        (480, 480, *[92, *[0] * 7] * 4), 2, ("26", "2", "18", "10"), "2-33"
    ),
    "a virtual machine that gives a GPU two nodes": Described(
        (64, 40, 40, 128), 1, ("1",), "1-2", "1-2"
    ),
    "CXL memory behind the nodes of a GPU": Described((*MIG, 256), 1, ("1",), "1-8"),
    "CXL memory at another distance behind the node of a GPU": Described(
        (64, 92, 256), 1, ("1",), "1", None, ((1, 80), (2, 24))
    ),
    "high-bandwidth memory in front of a GPU": Described((64, 16, 92), 1, ("2",), "2"),
    "CXL memory and no GPU": Described((64, 64, 256), 2, (), "", "\n"),
    "a driver that names a node with CPUs": Described((64, 64), 2, ("0",), ""),
    "a driver that names an impossible node": Described((64, 64), 2, ("99999", "many"), ""),
    "a node with CPUs is listed as a device's": Described((64, 64, 16), 2, (), "2", "1-2"),
    "a list of devices that is no list": Described((64, 64, 16), 2, (), "", "many"),
}


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_memory_of_a_device_is_told_from_ordinary_memory(
    machine: Described, tmp_path: Path, write_files: WriteFiles
) -> None:
    write_files(tmp_path, machine.files())
    topology = discover(tmp_path / "sys", tmp_path / "proc")
    assert str(MemSet(one.id for one in topology.numa_nodes if one.on_device)) == machine.on_device
    with_memory = MemSet(node for node, gib in enumerate(machine.gib) if gib)
    assert topology.mems == with_memory - MemSet.parse(machine.on_device)


def test_a_driver_that_is_loaded_after_its_memory_came_is_noticed(
    tmp_path: Path, write_files: WriteFiles
) -> None:
    write_files(tmp_path, Described(MIG, 1, (), "").files())
    machine = Machine(tmp_path / "sys", tmp_path / "proc")
    assert str(machine.topology.mems) == "0,2-4"
    write_files(tmp_path, gpu_files("1"))
    assert not machine.rescan()
    assert machine.rescan(pages=True)
    assert str(machine.topology.mems) == "0"
    assert not machine.rescan(pages=True)
