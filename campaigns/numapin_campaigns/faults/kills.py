"""Kill or stop parts of the lab, and start them again."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import combinations
from typing import Final

from numapin_campaigns.faults.target import Inject, Target
from numapin_campaigns.frame.observe import until_answered
from numapin_campaigns.frame.plan import Fault, Needs, PlannedFault
from numapin_campaigns.parts.part import (
    AGENTS,
    API_SERVER,
    CONTAINERD,
    ENFORCER,
    KUBELET,
    OPERATOR,
    STANDBY,
)
from numapin_campaigns.sampling.assignment_versions import AssignmentVersion, ContainerKey
from numapin_enforcer.node.heartbeat import HUNG_SECONDS
from numapin_enforcer.standby.fencing import RESYNC_SECONDS
from numapin_lab.controlplane.node_objects import read_node
from numapin_lab.errors import LabError

WITHOUT_API_SECONDS: Final = 30.0
"""How long the API server stays away for the kubelet to start the enforcer again without it."""
REPORT_SECONDS: Final = 5.0
REPORT_POLL_SECONDS: Final = 0.01
NOTICED_SECONDS: Final = HUNG_SECONDS + 2 * RESYNC_SECONDS
"""A standby with a CPU to run on has noticed by then that the enforcer hangs."""

KILL_ENFORCER: Final = Fault("KillEnforcer", (ENFORCER,), 28)
KILL_ENFORCER_AT_REPORT: Final = Fault(
    "KillEnforcerAtReport", (ENFORCER,), 28, frozenset({Needs.THREAD})
)
"""As soon as it has reported a new exclusive container."""
API_SERVER_OUTAGE: Final = Fault(
    "ApiServerOutage", (API_SERVER, ENFORCER), 120, frozenset({Needs.THREAD})
)
"""The API server is down, and the enforcer is killed and started again meanwhile."""

KILLS: Final = (
    KILL_ENFORCER,
    KILL_ENFORCER_AT_REPORT,
    Fault("KillStandby", (STANDBY,), 50),
    Fault("KillOperator", (OPERATOR,), 40),
    Fault("RestartApiServer", (API_SERVER,), 90),
    Fault("KillContainerd", (CONTAINERD,), 60, frozenset({Needs.RUNTIME})),
    Fault("KillKubelet", (KUBELET,), 65),
    API_SERVER_OUTAGE,
    *(
        Fault("Kill" + "And".join(map(str.capitalize, two)), two, needs=frozenset({Needs.TOGETHER}))
        for two in combinations(AGENTS, 2)
    ),
    Fault("KillAllThree", AGENTS, needs=frozenset({Needs.TOGETHER})),
)
STOPS: Final = (Fault("StopEnforcer", (ENFORCER,), 65, stops=True),)
"""SIGSTOP, and SIGCONT after the standby has noticed."""

FAULTS: Final = (*KILLS, *STOPS)


@contextmanager
def injector(target: Target) -> Iterator[Inject]:
    """Hits one part at a time."""
    yield partial(inject, target)


def inject(target: Target, planned: PlannedFault) -> None:
    """Inject a fault; returns when each of its parts is ready again."""
    with target.hitting:
        if planned.fault is API_SERVER_OUTAGE:
            _outage(target, planned.lasts_seconds)
        elif planned.fault.stops:
            _stop(target, planned)
        else:
            if planned.fault is KILL_ENFORCER_AT_REPORT:
                _wait_for_a_report(target)
            for name in planned.fault.parts:
                target.parts.kill(name)
            time.sleep(planned.lasts_seconds)
            for name in planned.fault.parts:
                target.parts.start(name)
                target.parts.wait_ready(name)


def _stop(target: Target, planned: PlannedFault) -> None:
    (name,), parts = planned.fault.parts, target.parts
    daemon = parts[name].daemon
    pid = daemon.pid()
    parts.stop(name)
    try:
        time.sleep(NOTICED_SECONDS + planned.lasts_seconds)
        if daemon.pid() != pid:
            raise daemon.failure(f"the {name} ended while it was stopped")
    finally:
        parts.start(name)
    parts.wait_ready(name)


def _outage(target: Target, seconds: float) -> None:
    parts = target.parts
    parts.kill(API_SERVER)
    parts.kill(ENFORCER)
    time.sleep(seconds)
    parts.start(ENFORCER)
    if target.installation.need_api_server:
        with suppress(LabError):
            parts[ENFORCER].wait_ready(WITHOUT_API_SECONDS)
    else:
        parts[ENFORCER].wait_ready()
    time.sleep(seconds)
    for name in (API_SERVER, ENFORCER):
        parts.start(name)
        parts.wait_ready(name)


def _wait_for_a_report(target: Target) -> None:
    """Return as soon as the enforcer has reported a new exclusive container."""
    before = set(_reported(target))
    deadline = time.monotonic() + REPORT_SECONDS
    while set(_reported(target)) <= before and time.monotonic() < deadline:
        time.sleep(REPORT_POLL_SECONDS)


def _reported(target: Target) -> tuple[tuple[ContainerKey, int], ...]:
    lab = target.lab
    body = until_answered(lambda: read_node(lab.cluster.api, lab.node), None)
    return AssignmentVersion.parse(body).reported_exclusive if body else ()
