"""Whether everything is in its end state when a chaos run is over."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from numapin_api.cpuset import CpuSet
from numapin_campaigns.frame.observe import until_answered
from numapin_lab.errors import LabError
from numapin_lab.processes.daemons import wait_until
from numapin_lab.running_lab import BUSY, RunningLab, pod

END_STATE_SECONDS: Final = 300.0
PROBE: Final = "chaos-probe"
NEIGHBOUR: Final = "chaos-neighbour"
POLICIES: Final = "/apis/numapin.io/v1beta1/cpupolicies"


def check_end_state(lab: RunningLab, residents: Iterable[str]) -> list[str]:
    """Wait until nothing is left of the pods that ended, and a new exclusive pod gets its CPU.

    Returns:
        The goals that were not reached, in sentences.
    """
    names = set(residents)
    goals: dict[str, Callable[[], bool]] = {
        "the NodeAssignment is Ready": lambda: until_answered(lab.in_force, False),
        "only the residents' cgroups are left": lambda: _pods_with_cgroups(lab) == len(names),
        "no pod that is gone is assigned or refused": lambda: _nothing_assigned(lab),
        "every policy is in force": lambda: _policies_ready(lab),
    }
    problems = [one for name, goal in goals.items() for one in _reach(name, goal)]
    problems += _probe(lab)
    left = "the probe's cgroups are gone"
    return problems + _reach(left, lambda: _pods_with_cgroups(lab) == len(names))


def check_restored(lab: RunningLab, policy: str, before: Mapping[str, CpuSet]) -> list[str]:
    """Delete the policy; every cgroup must get back the cpuset it had before the policy."""
    lab.delete("cpupolicy", policy)
    problems = _reach("the NodeAssignment is deleted with its policy", lambda: not lab.assignment())
    problems += _reach(
        "every cpuset is as before the policy", lambda: not _changed(lab.cpusets(), before)
    )
    return [f"{one}: {_changed(lab.cpusets(), before)}" for one in problems]


def _changed(now: Mapping[str, CpuSet], before: Mapping[str, CpuSet]) -> list[str]:
    """The cgroups that have another set now; a tenant may have created further ones."""
    return [
        f"{path} has {now.get(path)}, had {cpus}"
        for path, cpus in before.items()
        if now.get(path) != cpus
    ]


def _probe(lab: RunningLab) -> list[str]:
    """Run one more exclusive pod and a neighbour."""
    lab.apply(pod(NEIGHBOUR, BUSY), pod(PROBE, cpu="1"))
    lab.wait_running(NEIGHBOUR, PROBE)

    def apart() -> bool:
        exclusive = lab.allowed(PROBE)
        return len(exclusive) == 1 and exclusive.isdisjoint(lab.allowed(NEIGHBOUR))

    problems = _reach("a new exclusive container has its CPU to itself", apart)
    lab.delete("pod", PROBE, NEIGHBOUR)
    freed = _reach("the CPU is free again", lambda: _nothing_assigned(lab) and lab.in_force())
    return problems + freed


def _reach(what: str, goal: Callable[[], bool]) -> list[str]:
    try:
        wait_until(goal, what, END_STATE_SECONDS)
    except LabError:
        return [f"not reached after {END_STATE_SECONDS:.0f} s: {what}"]
    return []


def _pods_with_cgroups(lab: RunningLab) -> int:
    return sum(path.rpartition("/")[2].startswith("pod") for path in lab.cpusets())


def _nothing_assigned(lab: RunningLab) -> bool:
    assignment = lab.assignment()
    if assignment is None or assignment.status is None:
        return False
    spec, status = assignment.spec, assignment.status
    return not (spec.containers or spec.refused or status.containers or status.running)


def _policies_ready(lab: RunningLab) -> bool:
    found: list[dict[str, Any]] = until_answered(lambda: lab.cluster.api.get(POLICIES)["items"], [])
    return bool(found) and all(_ready(one) for one in found)


def _ready(policy: Mapping[str, Any]) -> bool:
    conditions = policy.get("status", {}).get("conditions", ())
    generation = policy["metadata"]["generation"]
    return any(
        (one["type"], one["status"], one["observedGeneration"]) == ("Ready", "True", generation)
        for one in conditions
    )
