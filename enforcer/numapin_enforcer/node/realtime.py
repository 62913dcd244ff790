"""A real-time priority, so that a pass runs at once on busy CPUs."""

import logging
import os
from typing import Final

LOG: Final = logging.getLogger(__name__)


def raise_priority() -> None:
    """Take the lowest real-time priority (needs CAP_SYS_NICE).

    A container must be pinned between the creation of its cgroup and its first instruction, some
    20 ms later; on busy CPUs an ordinary process is not even scheduled in that time. Threads do
    not inherit the priority: they move memory. Source: sched(7), "SCHED_RESET_ON_FORK".
    """
    try:
        policy = os.SCHED_RR | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, policy, os.sched_param(os.sched_get_priority_min(os.SCHED_RR)))
    except PermissionError:
        LOG.info("no real-time priority: on busy CPUs a container may start before it is pinned")
