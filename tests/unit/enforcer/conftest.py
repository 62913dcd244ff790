"""A small sound machine as files, for tests to spoil; a runtime, and what runs beside a test."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from numapin_api.topology import Topology
from numapin_enforcer.hardware.discovery import discover
from support.fakes.runtime import FakeRuntime
from support.fakes.worlds.followed_node import Node

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"
Files = dict[str, str | bytes | None]
"""Path to content; None makes a folder in its place, which cannot be read as a file."""


def _cpu_files(cpu: int) -> Files:
    core, socket = cpu % 4, cpu % 4 // 2
    folder, mask = f"{CPU}/cpu{cpu}", ("33\n", "cc\n")[socket]
    return {
        f"{folder}/topology/physical_package_id": f"{socket}\n",
        f"{folder}/topology/core_siblings": mask,
        f"{folder}/topology/thread_siblings": f"{1 << core | 1 << core + 4:x}\n",
        f"{folder}/cache/index3/level": "3\n",
        f"{folder}/cache/index3/id": f"{8 * socket}\n",
        f"{folder}/cache/index3/shared_cpu_map": f"000000{mask}",
    }


def _node_files(node: int) -> Files:
    folder = f"{NODE}/node{node}"
    return {
        f"{folder}/cpumap": ("33\n", "cc\n")[node],
        f"{folder}/meminfo": f"Node {node} MemTotal:  4000 kB\nNode {node} MemFree:  9 kB\n",
        f"{folder}/distance": ("10 21\n", "21 10\n")[node],
        f"{folder}/hugepages/hugepages-2048kB/nr_hugepages": f"{node}\n",
    }


@pytest.fixture(scope="session")
def sound_machine() -> Files:
    """Two sockets, each one NUMA node and one L3 of two cores with two threads, CPUs 0-7."""
    files: Files = {
        f"{CPU}/online": "0-7\n",
        f"{CPU}/isolated": "7\n",
        f"{NODE}/online": "0-1\n",
        "proc/meminfo": "MemTotal:       8000 kB\nMemFree: 1 kB\n",
        "sys/bus/pci/devices/0000:3b:00.0/class": "0x020000\n",
        "sys/bus/pci/devices/0000:3b:00.0/numa_node": "1\n",
    }
    for cpu in range(8):
        files |= _cpu_files(cpu)
    return files | _node_files(0) | _node_files(1)


@pytest.fixture(scope="session")
def write_files() -> Callable[[Path, Files], None]:
    """Write files and folders below a folder."""

    def write(root: Path, files: Files) -> None:
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                path.mkdir()
            else:
                path.write_bytes(content.encode() if isinstance(content, str) else content)

    return write


@pytest.fixture
def discovered(
    tmp_path: Path, sound_machine: Files, write_files: Callable[[Path, Files], None]
) -> Callable[..., Topology]:
    """Discover the sound machine with `put` in place and paths with a text of `drop` gone."""

    def build(put: Files, *drop: str) -> Topology:
        kept = {p: t for p, t in sound_machine.items() if not any(text in p for text in drop)}
        write_files(tmp_path, kept | put)
        return discover(tmp_path / "sys", tmp_path / "proc")

    return build


@pytest.fixture
def runtime() -> FakeRuntime:
    return FakeRuntime()


@pytest.fixture
def wake() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture
async def start() -> AsyncIterator[Callable[[Awaitable[None]], None]]:
    """Run something beside the test, and end it with the test."""
    tasks: list[asyncio.Future[None]] = []
    yield lambda waiting: tasks.append(asyncio.ensure_future(waiting))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
async def node(
    tmp_path: Path,
    runtime: FakeRuntime,
    wake: asyncio.Event,
    start: Callable[[Awaitable[None]], None],
) -> Node:
    """A node whose background updates run beside the test."""
    made = Node(tmp_path, runtime, wake)
    made.start(start)
    return made
