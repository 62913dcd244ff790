"""Holds a container's start at the point where its cgroup is there and its program is not yet."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from played_kubelet import Kubelet, Pod, pids_of

LAST_STAGE = "runc:[2:INIT]"
"""What runc's own process is called once it may become the program at any moment.

Source: opencontainers/runc libcontainer/nsenter/nsexec.c, prctl(PR_SET_NAME).
"""


@asynccontextmanager
async def held_start(kubelet: Kubelet, pod: Pod, command: Sequence[str]) -> AsyncIterator[str]:
    """The id of a container named `main` that the runtime has begun to start; goes on at the end.

    runc's process is stopped in the container's new cgroup: to the runtime the container is created
    and not started for as long. Where that was missed it is tried with another one.
    """
    while True:
        container_id = await kubelet.create(pod, "main", command)
        start = asyncio.create_task(kubelet.begin(container_id))
        stopped = await _stop_within(f"{pod.cgroup}/{container_id}", start)
        if stopped:
            break
        await start
        await kubelet.remove_container(container_id)
        kubelet.log(pod, "main").unlink(missing_ok=True)
    try:
        yield container_id
    finally:
        _send(stopped, signal.SIGCONT)
        await start


async def _stop_within(cgroup: str, start: "asyncio.Task[None]") -> tuple[int, ...]:
    """Stop whatever comes into the cgroup first; nothing if that was already too late."""
    while not start.done():
        await asyncio.sleep(0.0005)
        if not (found := _pids(cgroup)):
            continue
        _send(found, signal.SIGSTOP)
        if _pids(cgroup) == found and LAST_STAGE not in map(_name, found):
            return found
        _send(_pids(cgroup), signal.SIGCONT)
        return ()
    return ()


def _pids(cgroup: str) -> tuple[int, ...]:
    try:
        return pids_of(cgroup)
    except OSError:  # not there yet
        return ()


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def _send(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
