"""Memory and huge pages that a container of the start gate takes first, on two NUMA nodes.

Not collected on the host: test_in_virtual_machine.py runs this with CPU 1 beside NUMA node 1. The
operator is late, so without the gate a container would take them where it likes.
"""

import asyncio
import base64
import re
import struct
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from numapin_lab.node.played_kubelet import Kubelet, Pod
from support.real.enforcer_node import Node, assigned, spec
from support.real.kernel_cgroups import pids_of
from support.real.waiting import eventually

GATE = {"timeoutMilliseconds": 1500, "qosClasses": ["Guaranteed"], "memory": True}
LATE_SECONDS = 0.3
HUGE_PAGES = 64
# A shell that holds 4 MiB in a variable, and says when it has it; `true` at the end keeps it from
# becoming its last command.
HOLD = ("sh", "-c", "held=$(yes | head -c 4194304); echo held; sleep 1000; true")
HELD_PAGES = 4194304 // 4096
MEMORY, HUGE = re.compile(r"(?!.* file=).* anon=\d+"), re.compile(".* huge ")
"""Mappings in numa_maps; those of files may show pages that an earlier container has read."""

CODE = bytes.fromhex(
    "b809000000 31ff be00000008 ba03000000 41ba22000400 4983c8ff 4531c9 0f05"  # mmap, 128 MiB
    "4885c0 781b"  # js fail
    "b940000000 c60001 480500002000 ffc9 75f3"  # touch 64 pages of 2 MiB
    "b822000000 0f05 ebf7"  # pause
    "b83c000000 bf01000000 0f05"  # fail: exit
)
"""The whole of a program that takes 64 huge pages with its first instructions (x86-64)."""


def program(code: bytes) -> bytes:
    """An ELF program of one segment. Source: elf(5)."""
    base, size = 0x400000, 64 + 56 + len(code)
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, base + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 4096)
    return identity + header + segment + code


TAKE_HUGE = (
    "sh",
    "-c",
    f"echo {base64.b64encode(program(CODE)).decode()} | base64 -d >/tmp/take;"
    "chmod +x /tmp/take; exec /tmp/take",
)


def pages(cgroup: str, mappings: re.Pattern[str]) -> Counter[int]:
    """Pages of every process of a cgroup on each NUMA node. Source: numa(7)."""
    found: Counter[int] = Counter()
    for pid in pids_of(cgroup):
        for line in Path(f"/proc/{pid}/numa_maps").read_text().splitlines():
            if mappings.match(line):
                found.update({int(node): int(n) for node, n in re.findall(r" N(\d+)=(\d+)", line)})
    return found


def gate_of(node: Node) -> dict[str, object]:
    found: dict[str, object] = node.status.get("startGate") or {}
    return found


async def born(node: Node, kubelet: Kubelet, mems: str, command: Sequence[str]) -> tuple[Pod, str]:
    """A container that began with CPU 1 and these NUMA nodes, which were assigned late."""
    await node.start(**{"nri-socket": str(kubelet.runtime.nri_socket)})
    node.assign(spec(startGate=GATE))
    await eventually(lambda: gate_of(node).get("active"), "the gate to be active")
    pod = await kubelet.run_pod("born")
    running = asyncio.create_task(kubelet.run(pod, "main", command))
    await asyncio.sleep(LATE_SECONDS)
    node.assign(spec(assigned(pod.uid, "main", "1", mems=mems), shared="0", startGate=GATE))
    cgroup = f"{pod.cgroup}/{await running}"
    await eventually(lambda: gate_of(node).get("bornPinned") == 1, "it to be reported")
    return pod, cgroup


@pytest.mark.parametrize("mems", [0, 1])
async def test_memory_that_is_touched_first_is_on_its_numa_node(
    node: Node, kubelet: Kubelet, mems: int
) -> None:
    pod, cgroup = await born(node, kubelet, str(mems), HOLD)
    await eventually(lambda: "held" in kubelet.output(pod, "main"), "4 MiB to be held")
    there = pages(cgroup, MEMORY)
    assert there[mems] >= HELD_PAGES
    assert there[1 - mems] == 0


@pytest.mark.parametrize("mems", [0, 1])
async def test_huge_pages_that_are_taken_first_are_on_its_numa_node(
    node: Node, kubelet: Kubelet, mems: int
) -> None:
    _, cgroup = await born(node, kubelet, str(mems), TAKE_HUGE)
    await eventually(lambda: pages(cgroup, HUGE).total() == HUGE_PAGES, "the huge pages")
    assert pages(cgroup, HUGE) == {mems: HUGE_PAGES}
