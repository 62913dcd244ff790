"""What a healthy enforcer reports, in the form of v1alpha1 and in that of v1beta1. Does no I/O."""

from collections.abc import Iterable

from numapin_api.cpuset import CpuSet
from numapin_client.resources import Json

REASONS = {"Ready": "Enforced", "Reconciling": "Settled", "Stalled": "NotStalled"}
CREATED = "2026-01-01T00:00:00Z"


def status_of(latest: Json, running: set[str], others: Iterable[str]) -> Json:
    """What a healthy enforcer reports in the NodeAssignment itself.

    Args:
        latest: the newest object, its spec as v1alpha1 has it.
        running: the pods of the spec that have started.
        others: the UIDs of the node's other pods.
    """
    spec, generation = latest["spec"], latest["generation"]
    listed = _exclusive(spec)
    kept = ("podUID", "container", "cpus", "mems", "exclusive")
    status: Json = {
        "observedGeneration": generation,
        "containers": [
            {key: one[key] for key in kept if key in one}
            for one in listed
            if one["podUID"] in running
        ],
        "running": sorted({*others} | running),
    }
    return status | _alike(latest)


def report_of(latest: Json, running: set[str]) -> Json:
    """What a healthy enforcer reports in its NodeReport: only what differs from the lines."""
    about = {"uid": latest["uid"], "generation": latest["generation"]}
    waiting = {one["podUID"] for one in latest["spec"].get("containers") or ()} - running
    differs = {"differences": [], "notRunning": sorted(waiting)}
    return {"observed": about, "enforced": about} | differs | _alike(latest)


def _exclusive(spec: Json) -> list[Json]:
    return [one for one in spec.get("containers") or () if one.get("exclusive")]


def _alike(latest: Json) -> Json:
    """What both forms have: conditions, the pools in force, the platform."""
    spec, generation = latest["spec"], latest["generation"]
    found: Json = {
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
        exclusive = CpuSet.union(CpuSet.parse(one["cpus"]) for one in _exclusive(spec))
        found["pools"] = {**spec["pools"], "exclusive": str(exclusive)}
    return found
