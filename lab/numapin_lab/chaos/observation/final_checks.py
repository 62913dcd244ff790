"""Edge: whether everything is as it should be when a chaos run is over."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from numapin_api.cpuset import CpuSet
from numapin_lab.chaos.observation.cluster_state import persist
from numapin_lab.errors import LabError
from numapin_lab.processes.daemons import wait_until
from numapin_lab.running_lab import BUSY, RunningLab, pod

SETTLE_SECONDS: Final = 300.0
PROBE: Final = "chaos-probe"
NEIGHBOUR: Final = "chaos-neighbour"
POLICIES: Final = "/apis/numapin.io/v1alpha1/cpupolicies"


def converged(lab: RunningLab, residents: Iterable[str]) -> list[str]:
    """Wait until nothing is left of the pods that went, and one more owner gets its CPU.

    Returns:
        What is not as it should be, in sentences.
    """
    names = set(residents)
    goals: dict[str, Callable[[], bool]] = {
        "the NodeAssignment is Ready": lambda: persist(lab.settled, False),
        "only the residents' cgroups are left": lambda: _pods_with_cgroups(lab) == len(names),
        "no pod is assigned or refused that is gone": lambda: _nothing_held(lab),
        "every policy is in force": lambda: _policies_ready(lab),
    }
    problems = [one for name, goal in goals.items() for one in _reach(name, goal)]
    problems += _probe(lab)
    left = "the probe's cgroups are gone"
    return problems + _reach(left, lambda: _pods_with_cgroups(lab) == len(names))


def given_back(lab: RunningLab, policy: str, before: Mapping[str, CpuSet]) -> list[str]:
    """Delete the policy: every cgroup has again what it had before there was one."""
    lab.delete("cpupolicy", policy)
    problems = _reach("the NodeAssignment goes with its policy", lambda: not lab.assignment())
    problems += _reach("every cpuset is as found", lambda: lab.cpusets() == before)
    return [f"{one}: {lab.cpusets()}, before {before}" for one in problems]


def complaints(logs: Iterable[Iterable[str]]) -> list[str]:
    """Errors in the logs as problems."""
    return [f"logged: {line}" for log in logs for line in log]


def _probe(lab: RunningLab) -> list[str]:
    """One more owner and a neighbour, to see that all of it works."""
    lab.apply(pod(NEIGHBOUR, BUSY), pod(PROBE, cpu="1"))
    lab.wait_running(NEIGHBOUR, PROBE)

    def apart() -> bool:
        owned = lab.allowed(PROBE)
        return len(owned) == 1 and owned.isdisjoint(lab.allowed(NEIGHBOUR))

    problems = _reach("a new owner has its CPU alone", apart)
    lab.delete("pod", PROBE, NEIGHBOUR)
    gone = _reach("a CPU is free again", lambda: _nothing_held(lab) and lab.settled())
    return problems + gone


def _reach(what: str, goal: Callable[[], bool]) -> list[str]:
    try:
        wait_until(goal, what, SETTLE_SECONDS)
    except LabError:
        return [f"not so after {SETTLE_SECONDS:.0f} s: {what}"]
    return []


def _pods_with_cgroups(lab: RunningLab) -> int:
    return sum(path.rpartition("/")[2].startswith("pod") for path in lab.cpusets())


def _nothing_held(lab: RunningLab) -> bool:
    assignment = lab.assignment()
    if assignment is None or assignment.status is None:
        return False
    spec, status = assignment.spec, assignment.status
    return not (spec.containers or spec.refused or status.containers or status.running)


def _policies_ready(lab: RunningLab) -> bool:
    found: list[dict[str, Any]] = persist(lambda: lab.cluster.api.get(POLICIES)["items"], [])
    return bool(found) and all(_ready(one) for one in found)


def _ready(policy: Mapping[str, Any]) -> bool:
    conditions = policy.get("status", {}).get("conditions", ())
    generation = policy["metadata"]["generation"]
    return any(
        (one["type"], one["status"], one["observedGeneration"]) == ("Ready", "True", generation)
        for one in conditions
    )
