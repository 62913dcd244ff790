"""What a played enforcer reports: a status of a NodeAssignment, or a NodeReport. Does no I/O."""

from typing import Any, Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.forms.report import Generation, Seen, report_fields
from numapin_api.forms.spec import read_spec
from numapin_api.schema.plain import ContainerAssignment, ContainerStatus
from numapin_client.resources import Json
from numapin_enforcer.status.report import STATUS_FIELDS

REASONS: Final = {"Ready": "Enforced", "Reconciling": "Settled", "Stalled": "NotStalled"}
CREATED: Final = "2026-01-01T00:00:00Z"

CLEARED: Final[Json] = dict.fromkeys(STATUS_FIELDS)
"""A merge patch of what an enforcer once wrote into a NodeAssignment, and an older one writes."""

_OPTIONAL: Final[Json] = dict.fromkeys(("differences", "notRunning", "pools"))
"""Fields of a report that are gone if the next one lacks them."""


def slim(body: Json) -> Json:
    """What a stand-in keeps of a NodeAssignment: its spec as v1alpha1 has it."""
    metadata = body["metadata"]
    return {
        "uid": metadata["uid"],
        "generation": metadata["generation"],
        "spec": read_spec(body).wire,
        "hasStatus": "observedGeneration" in (body.get("status") or {}),
    }


def status_of(latest: Json, running: set[str], there_from_the_start: set[str]) -> Json:
    """What a healthy enforcer reports; `running` are the pods of the spec that have started."""
    spec, generation = latest["spec"], latest["generation"]
    listed = [one for one in spec.get("containers") or () if one.get("exclusive")]
    exclusive = CpuSet.union(CpuSet.parse(one["cpus"]) for one in listed)
    kept = ("podUID", "container", "cpus", "mems", "exclusive")
    status: dict[str, Any] = {
        "observedGeneration": generation,
        "containers": [
            {key: one[key] for key in kept if key in one}
            for one in listed
            if one["podUID"] in running
        ],
        "running": sorted(there_from_the_start | running),
        "cgroup": {"version": 2, "driver": "systemd"},
        "runtime": {"name": "containerd", "version": "2.1.9"},
        "conditions": [
            {
                "type": kind,
                "status": "True" if kind == "Ready" else "False",
                "reason": reason,
                "message": "",
                "observedGeneration": generation,
                "lastTransitionTime": CREATED,
            }
            for kind, reason in REASONS.items()
        ],
    }
    if "pools" in spec:
        status["pools"] = {**spec["pools"], "exclusive": str(exclusive)}
    return status


def report_of(latest: Json, status: Json, enforced: Generation) -> Json:
    """A merge patch of the status of a NodeReport that says the same as a status.

    Args:
        latest: the NodeAssignment, see `slim`.
        status: what is in force.
        enforced: the generation in force.
    """
    entries = map(ContainerAssignment.from_wire, latest["spec"].get("containers") or ())
    found = [
        ContainerStatus(
            pod_uid=one["podUID"],
            container=one["container"],
            cpus=CpuSet.parse(one["cpus"]),
            mems=MemSet.parse(one.get("mems", "")),
            exclusive=one["exclusive"],
        )
        for one in status["containers"]
    ]
    seen = Generation(latest["uid"], latest["generation"])
    assigned = {one.key: one for one in entries}
    return _OPTIONAL | report_fields(
        status, found, status["running"], assigned, Seen(seen, enforced)
    )
