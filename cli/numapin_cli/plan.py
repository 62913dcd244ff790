"""`numapin plan`: what a policy would give pods on a machine."""

import json
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import Final

from numapin_api.topology import Topology
from numapin_cli.machines import discover_below, read_machine
from numapin_cli.manifests import PlanInputs, read_inputs
from numapin_cli.subcommand import CommandError, Subcommand
from numapin_operator.placement import Plan, PodView, PolicyError, plan_node
from numapin_operator.policies.selection import selects

_DESCRIPTION: Final = """\
Show what a CpuPolicy would give pods on a machine: a table of containers with their CPUs and NUMA
nodes, the refused pods with what would have fitted, and a drawing of the machine with its CPUs
marked by container. Nothing is changed, and no cluster is needed.

Bound pods are placed in the order in which they were bound, then the others in the order of the
files. A policy that reserves neither CPUs nor a count reserves one CPU, because there is no Node to
compute a count from.
"""

_EPILOG: Final = """\
examples:
  numapin plan -f policy.yaml -f pods.yaml
  kubectl get pods -A -o yaml | numapin plan -f policy.yaml -f - --node worker-1 --machine w1.json
  numapin plan -f policy.yaml -f pods.yaml -o json
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        type=Path,
        required=True,
        metavar="FILE",
        help="YAML with one CpuPolicy and Pods, - for standard input; may be repeated",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--machine", type=Path, metavar="FILE", help="machine written by numapin topology -o json"
    )
    where.add_argument(
        "--root",
        type=Path,
        default=Path("/"),
        metavar="DIR",
        help="folder that holds a machine's sys and proc (default: /, this machine)",
    )
    parser.add_argument("--node", metavar="NAME", help="plan only the pods bound to this node")
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json"),
        default="text",
        help="a table and a drawing, or the NodeAssignment's spec in JSON (default: text)",
    )


def _run(options: Namespace) -> int:
    inputs = read_inputs(options.filename)
    if options.machine is None:
        topology = discover_below(options.root)
    else:
        topology = read_machine(options.machine)
    pods = _ordered(inputs, options.node)
    try:
        plan = plan_node(topology, inputs.policy, None, pods, frozenset())
    except PolicyError as problem:
        raise CommandError(f"policy {inputs.policy_name} on this machine: {problem}") from problem
    if options.output == "json":
        print(json.dumps(_document(plan), indent=2))
    else:
        _draw(topology, plan, pods)
    return 0


def _draw(topology: Topology, plan: Plan, pods: list[PodView]) -> None:
    """Print for people; only this needs the extra `cli`."""
    from numapin_cli.drawing.plan import draw_plan  # noqa: PLC0415
    from numapin_cli.drawing.text import terminal  # noqa: PLC0415

    terminal().print(draw_plan(topology, plan.spec, pods))


def _ordered(inputs: PlanInputs, node: str | None) -> list[PodView]:
    """The pods of one node in the order in which they are placed."""
    nodes = sorted({pod.node for pod in inputs.pods if pod.node})
    if node is None and len(nodes) > 1:
        raise CommandError(f"the pods are bound to nodes {', '.join(nodes)}; choose with --node")
    chosen = [pod for pod in inputs.pods if node is None or pod.node == node]
    if node is not None and not chosen:
        raise CommandError(f"--node {node}: no pod is bound to it")
    selector = inputs.policy.pods.pod_selector
    marked = [replace(pod, selected=selects(selector, pod.labels)) for pod in chosen]
    return sorted(marked, key=lambda pod: (not pod.bound, pod.bound))


def _document(plan: Plan) -> dict[str, object]:
    waiting = [
        {
            "namespace": each.namespace,
            "pod": each.pod,
            "container": each.container,
            "cpus": str(each.cpus),
        }
        for each in plan.waiting
    ]
    return {"spec": plan.spec.to_wire(), "waiting": waiting}


PLAN: Final = Subcommand(
    name="plan",
    summary="show what a policy would give pods on a machine, without a cluster",
    description=_DESCRIPTION,
    add_arguments=_add_arguments,
    run=_run,
)
