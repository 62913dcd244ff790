"""Real interrupts under load, of devices that are there at boot and of some that are plugged in.

Not collected on the host, whose interrupts they would move: test_interrupts.py runs this, with
QEMU's monitor at `MONITOR`. CPUs 2 and 3 are exclusive.
"""

import json
import mmap
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.interrupts.files import KernelMasks, MaskGoneError, MaskRefusedError
from numapin_enforcer.interrupts.keeper import Keeper
from numapin_enforcer.interrupts.plan import DEFAULT, WORKQUEUES, Limits, Mask
from numapin_enforcer.interrupts.saved_masks import FILE_NAME, SavedMasks
from numapin_enforcer.interrupts.updater import LOOK_SECONDS
from numapin_lab.components.catalog import cache_root
from numapin_lab.vm.initramfs import unpacked_module
from numapin_lab.vm.kernel import module_files
from support.real.saved_node import IDS, SavedNode, make, until

MONITOR = ("10.0.2.2", int(os.environ["NUMAPIN_TEST_MONITOR"]))
IRQS, WORKQUEUE_DIR = Path("/proc/irq"), Path("/sys/devices/virtual/workqueue")
FILES = KernelMasks(IRQS, WORKQUEUE_DIR)
EXCLUSIVE = CpuSet.parse("2-3")
BY_NUMA_NODE = {0: CpuSet.parse("0-1"), 1: EXCLUSIVE}
MACHINE = Limits(CpuSet(), CpuSet(), CpuSet.parse("0-3"), BY_NUMA_NODE)
CONTAINER = {"podUID": "owner", "namespace": "d", "pod": "owner", "container": "main"}
LEAVE = {
    "mode": "Static",
    "pools": {"reserved": "0", "shared": "0-1"},
    "containers": [CONTAINER | {"cpus": "2-3", "mems": "", "exclusive": True}],
    "refused": [],
}
KEEP_OFF = LEAVE | {"system": {"interrupts": "KeepOff"}}
LOAD_SECONDS = 10.0
FOREIGN = "others set interrupts onto exclusive CPUs"


def monitor(command: str, **arguments: Any) -> None:
    """Have QEMU do something."""
    with socket.create_connection(MONITOR, timeout=60) as connection:
        lines = connection.makefile("r", encoding="utf-8")
        for each, given in (("qmp_capabilities", {}), (command, arguments)):
            request = {"execute": each, "arguments": given}
            connection.sendall(json.dumps(request).encode() + b"\n")
            answer = next(one for one in map(json.loads, lines) if {"return", "error"} & one.keys())
            assert "return" in answer, answer


def texts() -> dict[str, str]:
    """All masks as the kernel writes them, byte by byte."""
    found = {str(one): one.read_text() for one in IRQS.glob("*/smp_affinity*")}
    others = (IRQS / DEFAULT, WORKQUEUE_DIR / "cpumask")
    return found | {str(one): one.read_text() for one in others}


def named() -> dict[str, Mask]:
    """Interrupts with a handler, by the name of their first one."""
    return {min(one.names): one for one in FILES.read(again=True) if one.names}


def intruding() -> list[str]:
    """What may come to an exclusive CPU, unless the kernel does not let it move."""
    masks = [one for one in FILES.read(again=True) if not one.is_idle]
    return [str(one) for one in masks if one.cpus & EXCLUSIVE and str(one) not in unmovable()]


_UNMOVABLE: dict[str, bool] = {}


def unmovable() -> list[str]:
    """What the kernel does not move. What it has now is written, so nothing changes."""
    for one in FILES.read(again=True):
        if one.names and str(one) not in _UNMOVABLE:
            try:
                FILES.write(one, one.cpus)
            except MaskRefusedError:
                _UNMOVABLE[str(one)] = True
            except MaskGoneError:
                continue
            else:
                _UNMOVABLE[str(one)] = False
    return [name for name, refused in _UNMOVABLE.items() if refused]


def counters() -> dict[str, dict[int, int]]:
    """How often each interrupt came to each CPU. Source: proc(5), `/proc/interrupts`."""
    head, *rows = Path("/proc/interrupts").read_text().splitlines()
    cpus = [int(one.removeprefix("CPU")) for one in head.split()]
    found: dict[str, dict[int, int]] = {}
    for row in rows:
        key, _, rest = row.partition(":")
        counts = [int(one) for one in re.findall(r"\d+", rest)[: len(cpus)]]
        name = rest.split()[-1] if key.strip().isdigit() else key.strip()
        if len(counts) == len(cpus):
            found[name] = dict(zip(cpus, counts, strict=True))
    return found


def came(before: Mapping[str, Mapping[int, int]], cpu: int) -> dict[str, int]:
    """What has come to a CPU since then."""
    more = {name: on[cpu] - before.get(name, {}).get(cpu, 0) for name, on in counters().items()}
    return {name: count for name, count in more.items() if count}


def load(seconds: float) -> None:
    """Have disks and networks busy from CPUs 0 and 1."""
    os.sched_setaffinity(0, {0, 1})
    end_seconds, page = time.monotonic() + seconds, mmap.mmap(-1, 4096)
    disk = os.open("/dev/vda", os.O_RDONLY | os.O_DIRECT)
    while time.monotonic() < end_seconds:
        monitor("query-status")
        for place in range(20):
            os.preadv(disk, [page], place * 4096)
    os.close(disk)


@pytest.fixture(scope="module")
def virtio_blk(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The driver, which a machine that boots from the host's files does not have."""
    folders = (Path("/lib/modules"), *cache_root(os.environ).glob("kernel*/lib/modules"))
    modules = next(one for one in folders if (one / os.uname().release).exists())
    modules /= os.uname().release
    for file in module_files((modules / "modules.dep").read_text(), ("virtio_blk",)):
        plain = tmp_path_factory.mktemp("module") / Path(file).name.removesuffix(".xz")
        plain.write_bytes(unpacked_module(modules / file))
        done = subprocess.run(
            ["busybox", "insmod", plain], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0 or "File exists" in done.stderr, done.stderr


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SavedNode]:
    for path in ("kubepods", "kubepods/burstable", "kubepods/besteffort", "kubepods/podowner"):
        make(path)
    owner, ours = make(f"kubepods/podowner/{next(IDS)}"), make("ours")
    made = SavedNode(tmp_path, ours)
    made.spawn(owner, "sleep", "10000")
    (owner / "cpuset.cpus").write_text("2-3")
    yield made
    made.end()


def plug() -> None:
    """A second network card, and a disk with a queue for each CPU."""
    monitor("netdev_add", type="user", id="second")
    monitor("device_add", driver="virtio-net-pci", netdev="second", id="card", romfile="")
    disk = {"driver": "null-co", "node-name": "null", "size": 1 << 30, "read-zeroes": True}
    monitor("blockdev-add", **disk)
    monitor("device_add", **{"driver": "virtio-blk-pci", "drive": "null", "num-queues": 4})
    until(lambda: Path("/dev/vda").exists() and Path("/sys/class/net/eth1").exists(), "devices")
    for command in ("link set eth1 up", "address add 10.0.2.16/24 dev eth1"):
        subprocess.run(["busybox", "ip", *command.split()], check=True)


def stand_still_under_load() -> None:
    """No device interrupts an exclusive CPU while disk and network are busy."""
    load(LOOK_SECONDS)
    start = counters()
    load(LOAD_SECONDS)
    gone = {cpu: came(start, cpu) for cpu in range(4)}
    print("interrupts under load:", *gone.items(), sep="\n  ")
    devices = {name for cpu in (0, 1) for name in gone[cpu] if "-" in name}
    assert any("input" in one or "output" in one for one in devices), "the network was not busy"
    assert any("-req." in one for one in devices), "the disk was not busy"
    per_cpu = {name for cpu in EXCLUSIVE for name in gone[cpu]}
    assert not per_cpu & devices, "a device interrupted an exclusive CPU"
    assert per_cpu <= {"LOC", "RES", "CAL", "TLB", "IWI", "RTR", "MCP", "NMI", "PMI"}


def are_as_without_us(new: AbstractSet[str]) -> None:
    """Devices that were plugged in have the interrupts that they would have begun with."""
    movable = [one for name, one in named().items() if name in new and str(one) not in unmovable()]
    print("after the release:", *((str(one), str(one.cpus), one.numa_node) for one in movable))
    without_us = {str(one): MACHINE.at_birth(MACHINE.online, one.numa_node) for one in movable}
    assert {str(one): one.cpus for one in movable} == without_us


def test_interrupts_keep_off_exclusive_cpus_and_come_back(
    node: SavedNode, virtio_blk: None
) -> None:
    found, left = texts(), unmovable()
    print("the kernel does not move:", *left, sep="\n  ")
    node.save(KEEP_OFF)
    enforcer = node.enforcer()
    until((node.folder / "state" / FILE_NAME).exists, "what was found to be saved")
    until(lambda: not intruding(), "interrupts to leave")
    before = set(named())
    plug()
    new = {name: one for name, one in named().items() if name not in before}
    assert any("input" in name for name in new), new
    print("plugged in:", *map(str, new.values()), "unmovable:", *unmovable(), sep="\n  ")
    print("not begun with the default mask:", *intruding(), sep="\n  ")
    until(lambda: not intruding(), "new interrupts to leave")
    stand_still_under_load()
    card = next(one for one in named().values() if "virtio" in str(one) and "input" in str(one))
    logged = node.log("enforcer").count(FOREIGN)
    FILES.write(card, EXCLUSIVE)
    until(lambda: not intruding(), "an interrupt that others have set to be set back")
    until(lambda: node.log("enforcer").count(FOREIGN) > logged, "that to be logged")
    enforcer.kill()
    enforcer.wait()
    assert not intruding(), "what was narrowed stays so while no enforcer runs"

    node.save(LEAVE, generation=2)
    node.enforcer()
    until(lambda: not (node.folder / "state" / FILE_NAME).exists(), "interrupts to be restored")
    restored = texts()
    assert {path: restored[path] for path in found} == found
    are_as_without_us(set(new))


def test_the_kernel_refuses_what_the_fake_refuses(tmp_path: Path, virtio_blk: None) -> None:
    one = next(each for each in named().values() if str(each) not in unmovable())
    for mask in (
        one,
        Mask(DEFAULT, FILES.read(again=True)[0].cpus),
        Mask(WORKQUEUES, FILES.read(again=True)[1].cpus),
    ):
        with pytest.raises(MaskRefusedError, match="EINVAL"):
            FILES.write(mask, CpuSet())
    with pytest.raises(MaskRefusedError, match=r"EINVAL|ERANGE"):
        FILES.write(one, CpuSet.parse("700"))
    with pytest.raises(MaskGoneError):
        FILES.write(Mask("999", one.cpus), one.cpus)
    assert unmovable(), "no interrupt of this machine is managed by the kernel"
    managed = [each for each in FILES.read(again=True) if str(each) in unmovable()]
    for each in managed:
        with pytest.raises(MaskRefusedError, match=r"EIO|EPERM"):
            FILES.write(each, one.cpus)
    assert Keeper(FILES, SavedMasks(tmp_path, "boot")).saved.masks == {}
