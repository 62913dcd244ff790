"""Compare our planner with the kubelet's own managers on random scenarios.

    python -m numapin_benchmarks.placement.differ [--count N] [--seed TEXT] [--kubelet PROGRAM]

Prints every difference with the scenario's name, which is its seed, and exits 1 if there is one.
Scenarios without a usable answer of the kubelet are counted: it hangs, it panics (sparse NUMA nodes
with distances), it answers differently the second time, or it rejects the policy, which our planner
must then reject too.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from numapin_api.cpuset import CpuSet
from numapin_benchmarks.placement.guesses import guess
from numapin_benchmarks.placement.peer import Kubelet, build
from numapin_benchmarks.placement.workload import Json
from numapin_cli.commands.simulate import answer
from numapin_cli.inputs.machines import Machines
from numapin_cli.inputs.scenario import parse_scenario
from numapin_operator.placement import KUBELET

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
        )
        for name, given in (step.get("containers") or {}).items()
        if given.get("cpus") or given.get("memory")
    }
    reason = step.get("reason") if step.get("reason") in _NAMED else None
    return step.get("admitted"), reason, containers, CpuSet.parse(step["shared"])


def outcome(kubelet: Kubelet, question: Json) -> str:
    """The outcome of a scenario in a few words; differences begin with `DIFFERENT`."""
    theirs = kubelet.ask(question)
    if theirs is None:
        return "the kubelet hangs or ends"
    played = parse_scenario(json.dumps(question), Machines(Path()))
    ours = answer(played, KUBELET)
    if "error" in theirs or "error" in ours:
        return _of_errors(theirs.get("error"), ours.get("error"))
    difference = _difference(theirs, ours)
    if difference is None:
        return "alike"
    again = kubelet.ask(question)
    if again is None or _difference(theirs, again) is not None:
        return "the kubelet is inconsistent"
    return f"DIFFERENT: {difference}"


def _of_errors(theirs: str | None, ours: str | None) -> str:
    if theirs and "panicked" in theirs:
        return "the kubelet panics"
    if theirs and ours:
        return "rejected by both"
    return f"DIFFERENT: theirs {theirs or 'answers'}, ours {ours or 'answers'}"


def _difference(theirs: Json, ours: Json) -> str | None:
    for number, (want, have) in enumerate(zip(theirs["steps"], ours["steps"], strict=True)):
        if facts(want) != facts(have):
            return f"step {number}: theirs {json.dumps(want)}, ours {json.dumps(have)}"
    return None


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
            came = outcome(kubelet, question)
            if came.startswith("DIFFERENT"):
                print(f"{question['name']}: {came}", flush=True)
            seen[came.partition(":")[0]] += 1
    print(", ".join(f"{count} {what}" for what, count in seen.most_common()))
    return 1 if seen["DIFFERENT"] else 0


if __name__ == "__main__":
    sys.exit(main())
