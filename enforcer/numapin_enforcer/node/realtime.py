"""A real-time priority, so that a pass runs at once on busy CPUs."""

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Final

LOG: Final = logging.getLogger(__name__)


DEFAULT_PRIORITY: Final = 98
"""Above the threads of pods, and below 99.

A thread of SCHED_FIFO that never waits takes its CPU from all below it for as long as it runs, and
the pool may have a single CPU. The kernel gives 50 to threads of its own, interrupts among them
(kernel/sched/syscalls.c, `sched_set_fifo`); programs choose from 1 to some 95. 99 is left to
daemons without which a machine dies, such as corosync and multipathd. Passes take little enough
CPU time for that: see `Schedule`.
"""

REFUSED: Final = (
    "no real-time priority: on busy CPUs a container may start before it is pinned, and a "
    "real-time program on the shared CPUs can stop enforcement"
)
REMEDY: Final = "it needs CAP_SYS_NICE and, on cgroup v1, cpu.rt_runtime_us above 0 in its cgroup"


def raise_priority(priority: int) -> str:
    """Take a real-time priority (needs CAP_SYS_NICE), also for threads begun later.

    A container must be pinned between the creation of its cgroup and its first instruction, some
    20 ms later; on busy CPUs an ordinary process is not even scheduled in that time. A thread
    without the priority delays the others: it may hold the interpreter's lock while it waits for
    a CPU, and when the process is killed, the kernel releases its file locks only after each of
    its threads has run once more. Source: sched(7); kernel/exit.c, `exit_files`.

    Args:
        priority: from 1 to 99; 0 leaves the process an ordinary one.

    Returns:
        Why the process goes on without it; empty if it has what was asked for.
    """
    if priority == 0:
        return ""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(priority))
    except OSError as error:
        LOG.warning(REFUSED, extra={"priority": priority, "error": error, "remedy": REMEDY})
        return f"{REFUSED}: {error.strerror}; {REMEDY}"
    return ""


def thread_pool() -> ThreadPoolExecutor:
    """Threads with the caller's priority; programs that they start run with an ordinary one."""
    return ThreadPoolExecutor(initializer=_reset_on_fork)


def _reset_on_fork() -> None:
    policy = os.sched_getscheduler(0) | os.SCHED_RESET_ON_FORK
    os.sched_setscheduler(0, policy, os.sched_getparam(0))
