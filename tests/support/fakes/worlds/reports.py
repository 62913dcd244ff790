"""Reports of a node whose assigned containers are in force if their pods run."""

from typing import Any

from numapin_api.conditions.reasons import Obstacle
from numapin_api.cpuset import CpuSet
from numapin_api.forms.report import Generation
from numapin_api.schema.plain import (
    ContainerAssignment,
    ContainerStatus,
    NodeAssignmentStatus,
    PoolsInForce,
)
from numapin_enforcer.assignment.either_form import Judged
from numapin_enforcer.status.conditions import judge
from numapin_enforcer.status.report import Report

HARDWARE = {"numaNodes": [{"id": 0, "cpus": "0-3"}]}
POOLS = PoolsInForce(reserved=CpuSet([0]), shared=CpuSet([0, 1]))
POLICY = ("Static", "p", 1)


def assignment(uid: str, cpu: int) -> ContainerAssignment:
    return ContainerAssignment(uid, "d", uid, "c", CpuSet([cpu]), exclusive=True)


def report(
    generation: int = 1,
    *assigned: ContainerAssignment,
    running: tuple[str, ...] = (),
    waited_for: object = POLICY,
    stalled: Obstacle | None = None,
    **more: Any,
) -> Report:
    """A report whose assigned containers are in force if their pods run."""
    found = tuple(
        ContainerStatus(one.pod_uid, one.container, one.cpus, exclusive=True)
        for one in assigned
        if one.pod_uid in running
    )
    exclusive = CpuSet.union(one.cpus for one in found)
    content = NodeAssignmentStatus(
        observed_generation=generation,
        topology=more.pop("topology", HARDWARE),
        pools=PoolsInForce(POOLS.reserved, POOLS.shared, exclusive),
        containers=found,
        running=running,
        drift_count=more.pop("drifts", 0),
        refused=more.pop("refused", 0),
    )
    seen = Generation("u1", generation)
    judged = Judged(seen, seen, {one.key: one for one in assigned}, waited_for, has_lines=True)
    return Report(content, judge(stalled, None, f"{len(found)} exclusive"), judged, **more)
