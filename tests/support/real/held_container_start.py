"""Holds a container's start at the point where its cgroup is there and its program is not yet."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from numapin_lab.node.cgroups import MOUNTS, hierarchies
from numapin_lab.node.played_kubelet import Kubelet, Pod
from support.real.kernel_cgroups import pids_of
from support.real.waiting import eventually

FREEZERS = (("freezer.state", "FROZEN", "THAWED"), ("cgroup.freeze", "1", "0"))
"""Of cgroup v1 and v2: the file, what freezes all below, what lets it go on."""


@asynccontextmanager
async def held_start(kubelet: Kubelet, pod: Pod, command: Sequence[str]) -> AsyncIterator[str]:
    """The id of a container named `main` that the runtime has begun to start; goes on at the end.

    Its pod is frozen, and runc's process with it as soon as it has joined the container's new
    cgroup: to the runtime the container is created and not started for as long.
    """
    freezer, frozen, thawed = _freezer(pod)
    container_id = await kubelet.create(pod, "main", command)
    freezer.write_text(frozen)
    start = asyncio.create_task(kubelet.begin(container_id))
    try:
        await eventually(lambda: pids_of(f"{pod.cgroup}/{container_id}"), "runc in the cgroup")
        yield container_id
        assert not start.done()
    finally:
        freezer.write_text(thawed)
        await start


def _freezer(pod: Pod) -> tuple[Path, str, str]:
    for name, frozen, thawed in FREEZERS:
        for mount in hierarchies(MOUNTS.read_text()):
            if (file := mount / pod.cgroup / name).exists():
                return file, frozen, thawed
    raise AssertionError(f"{pod.cgroup} cannot be frozen")
