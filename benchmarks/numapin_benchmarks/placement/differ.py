"""Compare our planner with the kubelet's own managers on random scenarios.

    python -m numapin_benchmarks.placement.differ [--count N] [--seed TEXT] [--kubelet PROGRAM]

Prints every difference with the scenario's name, which is its seed, and exits 1 if there is one.
Scenarios without a usable answer of the kubelet are counted: it hangs, it panics (sparse NUMA nodes
with distances), it answers differently another time, or it rejects the policy, which our planner
must then reject too.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from numapin_api.cpuset import CpuSet
from numapin_benchmarks.placement.guesses import guess
from numapin_benchmarks.placement.peer import Kubelet, build
from numapin_benchmarks.placement.workload import Json
from numapin_cli.commands.simulate import answer
from numapin_cli.inputs.machines import Machines
from numapin_cli.inputs.scenario import parse_scenario
from numapin_operator.placement import KUBELET

_RUNS = 32
"""How often the kubelet is asked before its devices count as different from ours."""
_NAMED = ("TopologyAffinityError", "SMTAlignmentError", "EmptyPodSharedPoolError")


def facts(step: Json) -> tuple[object, ...]:
    """A step in a form that compares by value; only reasons in _NAMED are compared."""
    containers = {
        name: (
            CpuSet.parse(given.get("cpus") or ""),
            sorted(
                (tuple(block["numaNodes"]), block["resource"], block["bytes"])
                for block in given.get("memory") or []
            ),
            sorted((resource, len(ids)) for resource, ids in (given.get("devices") or {}).items()),
        )
        for name, given in (step.get("containers") or {}).items()
        if given.get("cpus") or given.get("memory") or given.get("devices")
    }
    reason = step.get("reason") if step.get("reason") in _NAMED else None
    return step.get("admitted"), reason, containers, CpuSet.parse(step["shared"])


def near(step: Json, devices: Json) -> Sequence[object]:
    """The NUMA nodes of each device that a step gives to containers."""
    at = {(name, one["id"]): one["numaNodes"] for name, each in devices.items() for one in each}
    return sorted(
        (name, resource, sorted(at[resource, id_] for id_ in ids))
        for name, given in (step.get("containers") or {}).items()
        for resource, ids in (given.get("devices") or {}).items()
    )


def outcome(ask: Callable[[Json], Json | None], question: Json) -> str:
    """The outcome of a scenario in a few words; differences begin with `DIFFERENT`.

    Args:
        ask: has the kubelet answer; None if it hangs or ends.
        question: the scenario.
    """
    played = parse_scenario(json.dumps(question), Machines(Path()))
    ours, theirs = answer(played, KUBELET), list[Json]()
    for runs in (1, _RUNS if question["devices"] else 2):
        while len(theirs) < runs:
            asked = ask(question)
            if asked is None:
                return "the kubelet hangs or ends"
            theirs.append(asked)
        if "error" in theirs[0] or "error" in ours:
            return _of_errors(theirs[0].get("error"), ours.get("error"))
        came = _compared(theirs, ours, question["devices"])
        if not came.startswith("DIFFERENT"):
            return came
    return came


def _compared(theirs: Sequence[Json], ours: Json, devices: Json) -> str:
    """How our steps compare with what the kubelet answers each time.

    Which of equal devices it takes is the order of a Go map, and much can follow from that. So the
    NUMA nodes of devices are compared where they never varied, and nothing from the first step on
    in which anything else did.
    """
    for number, have in enumerate(ours["steps"]):
        wanted = [one["steps"][number] for one in theirs]
        if any(facts(one) != facts(wanted[0]) for one in wanted):
            return f"the kubelet varies{' with its devices' if devices else ''}"
        places = [near(one, devices) for one in wanted]
        is_elsewhere = all(one == places[0] for one in places) and near(have, devices) != places[0]
        if facts(wanted[0]) != facts(have) or is_elsewhere:
            return (
                f"DIFFERENT: step {number}: theirs {json.dumps(wanted[0])}, ours {json.dumps(have)}"
            )
    return f"alike{', with devices' if devices else ''}"


def _of_errors(theirs: str | None, ours: str | None) -> str:
    if theirs and "panicked" in theirs:
        return "the kubelet panics"
    if theirs and ours:
        return "rejected by both"
    return f"DIFFERENT: theirs {theirs or 'answers'}, ours {ours or 'answers'}"


def main() -> int:
    """Compare all scenarios and print the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=500, help="number of scenarios (500)")
    parser.add_argument("--seed", default="1", help="seed of the scenarios (1)")
    parser.add_argument("--kubelet", type=Path, help="the Go program, if it is already built")
    options = parser.parse_args()
    seen: Counter[str] = Counter()
    with Kubelet(options.kubelet or build(), timeout_seconds=10) as kubelet:
        for number in range(options.count):
            question = guess(f"{options.seed}-{number}")
            came = outcome(kubelet.ask, question)
            if came.startswith("DIFFERENT"):
                print(f"{question['name']}: {came}", flush=True)
            seen[came.partition(":")[0]] += 1
    print(", ".join(f"{count} {what}" for what, count in seen.most_common()))
    return 1 if seen["DIFFERENT"] else 0


if __name__ == "__main__":
    sys.exit(main())
