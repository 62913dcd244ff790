"""A real-time priority, so that a pass runs at once on busy CPUs."""

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Final

LOG: Final = logging.getLogger(__name__)


def raise_priority() -> None:
    """Take the lowest real-time priority (needs CAP_SYS_NICE), also for threads begun later.

    A container must be pinned between the creation of its cgroup and its first instruction, some
    20 ms later; on busy CPUs an ordinary process is not even scheduled in that time. A thread
    without the priority delays the others: it may hold the interpreter's lock while it waits for
    a CPU, and when the process is killed, the kernel releases its file locks only after each of
    its threads has run once more. Source: sched(7); kernel/exit.c, `exit_files`.
    """
    try:
        parameters = os.sched_param(os.sched_get_priority_min(os.SCHED_RR))
        os.sched_setscheduler(0, os.SCHED_RR, parameters)
    except PermissionError:
        LOG.warning(
            "no real-time priority: on busy CPUs a container may start before it is pinned; it "
            "needs CAP_SYS_NICE and, on cgroup v1, cpu.rt_runtime_us above 0 in its own cgroup"
        )


def thread_pool() -> ThreadPoolExecutor:
    """Threads with the caller's priority; programs that they start run with an ordinary one."""
    return ThreadPoolExecutor(initializer=_reset_on_fork)


def _reset_on_fork() -> None:
    policy = os.sched_getscheduler(0) | os.SCHED_RESET_ON_FORK
    os.sched_setscheduler(0, policy, os.sched_getparam(0))
