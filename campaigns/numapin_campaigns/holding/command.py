"""Random pods on played nodes, in four ways: held, shared twice, and refused by kubelets.

The API server, the scheduler (Kubernetes' own, as it is set up by default) and the operator are
real; nodes of 2 NUMA nodes with 8 CPUs, and their enforcers, are played. The same pods come in each
way. Each asks for 1 to 7 CPUs and must have them on one NUMA node:

    Hold     a policy with onUnsatisfiable: Hold; all pods are held
    Share    a policy with onUnsatisfiable: Share; the scheduler binds, then the operator decides
    plug-in  as Share; the operator publishes NodeResourceTopologies, and the scheduler is one with
             the plug-in NodeResourceTopologyMatch, which is built if it is not there
    kubelet  no numapin; the planner plays kubelets with cpuManagerPolicy static and
             topologyManagerPolicy single-numa-node; after 1 s a failed pod is created again

Reported are, for each way: how many pods had aligned CPUs within a second after they were bound,
later or never; how many pods failed; seconds from a pod's creation until it had aligned CPUs, and
until it was bound (and accepted). A violation is a CPU that two containers have, CPUs of two NUMA
nodes, or a held pod that was bound without its place; a problem is a pod that did not end. With the
plug-in that is none: pods may wait minutes for the scheduler's next look, and count as "never".
"""

import argparse
import asyncio
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from numapin_campaigns.frame.command import chosen_seed
from numapin_campaigns.frame.judge import Verdict
from numapin_campaigns.frame.plain import PlainReport
from numapin_campaigns.holding.outcome import Outcome, Way
from numapin_campaigns.holding.run import perform
from numapin_campaigns.holding.workload import Plan, plan
from numapin_lab.components.build import say
from numapin_lab.errors import LabError


def add_options(parser: argparse.ArgumentParser) -> None:
    """How many pods and nodes, how loaded, and where the figures go."""
    parser.add_argument("--pods", type=int, default=500, help="how many pods (500)")
    parser.add_argument("--nodes", type=int, default=50, help="how many nodes (50)")
    parser.add_argument("--load", type=float, default=0.8, help="share of CPUs asked for (0.8)")
    parser.add_argument("--runs", type=float, default=15.0, help="seconds a pod runs, mean (15)")
    parser.add_argument("--seed", type=int, default=None, help="default: a random one, printed")
    ways = [str(one) for one in Way]
    parser.add_argument("--only", nargs="+", choices=ways, default=ways, help="only these ways")
    parser.add_argument("--output", type=Path, help="write the figures to this file as JSON")


def planned(options: argparse.Namespace) -> Plan:
    """The pods that the options ask for.

    Raises:
        LabError: an option cannot be used.
    """
    for name in ("pods", "nodes", "load", "runs"):
        if getattr(options, name) <= 0:
            raise LabError(f"--{name} is {getattr(options, name)}, and must be above 0")
    if options.seed is None:
        options.seed = chosen_seed()
    return plan(options.seed, options.pods, options.nodes, options.load, options.runs)


def run(options: argparse.Namespace) -> bool:
    """Play the pods in each way, print the report and write it. Whether nothing was found."""
    made = planned(options)
    again = f"--seed {made.seed} --pods {options.pods} --nodes {options.nodes}"
    say(f"holding: to repeat this run: {again} --load {options.load} --runs {options.runs}")
    found: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="numapin-holding-") as name:
        for way in map(Way, options.only):
            folder = Path(name) / way
            folder.mkdir()
            found.append(asyncio.run(perform(way, made, folder, say)))
            say(f"{way}: {found[-1].figures()}")
    report = report_of(made, found)
    print(report.summary())
    if options.output:
        figures = report.to_json() | {"times": {str(one.way): one.times() for one in found}}
        options.output.write_text(json.dumps(figures) + "\n")
    return report.good


def report_of(made: Plan, found: Sequence[Outcome]) -> PlainReport:
    """What the ways have shown."""
    return PlainReport(
        seed=made.seed,
        verdict=Verdict(tuple(each for one in found for each in one.violations())),
        problems=[each for one in found for each in one.problems()],
        seconds=sum(one.seconds for one in found),
        own={
            "nodes": made.nodes,
            "asked": made.load,
            **{str(one.way): one.figures() for one in found},
        },
    )
