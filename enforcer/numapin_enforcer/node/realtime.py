"""Edge: run before everybody else on the shared CPUs, where that is allowed."""

import logging
import os
from typing import Final

LOG: Final = logging.getLogger(__name__)


def raise_priority() -> None:
    """Take the lowest real-time priority (needs CAP_SYS_NICE).

    A container is to be set between the making of its cgroup and its first instruction, some 20 ms
    later; on CPUs that others keep busy an ordinary process is not even run in that time. Threads
    do not inherit it: they move memory. Source: sched(7), "SCHED_RESET_ON_FORK".
    """
    try:
        policy = os.SCHED_RR | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, policy, os.sched_param(os.sched_get_priority_min(os.SCHED_RR)))
    except PermissionError:
        LOG.info("not allowed to run before others; on busy CPUs a container may start unpinned")
