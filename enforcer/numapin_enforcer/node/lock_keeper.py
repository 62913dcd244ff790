"""The enforcer waits for the node's lock, keeps it, and shows that it does its work."""

import asyncio
import logging
from pathlib import Path
from typing import Final, NoReturn

from numapin_daemon.clock import Clock, SystemClock
from numapin_enforcer.node.heartbeat import Heartbeat, Progress
from numapin_enforcer.node.lock import NodeLock

LOG: Final = logging.getLogger(__name__)

BEAT_SECONDS: Final = 1.0
"""How often the loop renews the stamp."""

POLL_SECONDS: Final = 0.002
POLLS: Final = 1000
"""How often to try to acquire the lock: a standby releases it within milliseconds."""

ANOTHER_ENFORCER: Final = "another enforcer runs on this node, this one waits until it ends"
ONE_INSTALLATION: Final = (
    "if it does not end, find out which: numapin may be installed twice in this cluster (kubectl "
    "get daemonsets -A -l app.kubernetes.io/name=numapin), or somebody started it by hand"
)


IDLE: Final = "no pass does its work: a standby keeps new cgroups off exclusive CPUs meanwhile"
WORKS_AGAIN: Final = "passes do their work again"


class LockLostError(Exception):
    """The lock's file was replaced, and another process has the lock of the new one."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} was deleted while this process had its lock, and another enforcer has it now"
        )


async def acquire_from_standby(lock: NodeLock, clock: Clock | None = None) -> bool:
    """Acquire the lock once the standby releases it; False if an enforcer has it.

    Raises:
        FileNotFoundError: the file was never created.
        OSError: the file cannot be opened.
    """
    clock = clock or SystemClock()
    for _ in range(POLLS):
        if lock.try_acquire():
            return True
        await clock.sleep(POLL_SECONDS)
    return False


async def wait_for_lock(lock: NodeLock, ended: asyncio.Event, clock: Clock | None = None) -> None:
    """Return once no other enforcer runs on this node, or `ended` is set.

    If the lock's file cannot be created, there is none, and no standby acts. A file that exists is
    locked in a read-only folder as well.
    """
    waits = False
    try:
        lock.create()
        while not ended.is_set() and not await acquire_from_standby(lock, clock):
            if not waits:
                LOG.warning(ANOTHER_ENFORCER, extra={"lock": lock.path, "remedy": ONE_INSTALLATION})
            waits = True
    except OSError as error:
        LOG.warning("the node's lock cannot be taken", extra={"lock": lock.path, "error": error})


async def keep_lock(lock: NodeLock, clock: Clock | None = None) -> None:
    """Acquire the lock again if its file was deleted or replaced, by somebody who tidied up.

    Raises:
        LockLostError: another enforcer was faster.
    """
    if not lock.replaced():
        return
    LOG.warning("the node's lock was deleted, it is taken again", extra={"lock": lock.path})
    try:
        lock.create()
        if not await acquire_from_standby(lock, clock):
            raise LockLostError(lock.path)
    except OSError as error:
        LOG.warning("the node's lock cannot be taken", extra={"lock": lock.path, "error": error})


async def keep_alive(
    heartbeat: Heartbeat, lock: NodeLock, progress: Progress, clock: Clock | None = None
) -> NoReturn:
    """Beat while the event loop runs and passes do their work, and keep the lock.

    The lock is kept also while nothing is done: the standby fences without it then, only new
    cgroups, and leaves everything else to the next pass that works.

    Raises:
        LockLostError: another enforcer has the lock.
    """
    clock, unseen, idle = clock or SystemClock(), "", False
    while True:
        was_unseen, unseen, was_idle, idle = unseen, "", idle, bool(progress.problem)
        try:
            if not idle:
                heartbeat.beat()
        except OSError as error:
            unseen = str(error)
            if unseen != was_unseen:
                LOG.warning("a standby cannot see whether this process hangs", extra={"why": error})
        if idle != was_idle:
            LOG.warning(IDLE if idle else WORKS_AGAIN, extra={"why": progress.problem})
        await keep_lock(lock, clock)
        slept_at = clock.monotonic()
        await clock.sleep(BEAT_SECONDS)
        progress.stood_still(max(0.0, clock.monotonic() - slept_at - BEAT_SECONDS))
