"""`numapin plan`: what the operator would write for nodes that files describe."""

import json
import sys
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff

import yaml

from numapin_api.quantity import plural
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_cli.advice.eligibility import why_planned_pods_share
from numapin_cli.advice.notes import notes_of_plan
from numapin_cli.inputs.input_flags import described_by, read_given
from numapin_cli.inputs.objects import Objects
from numapin_cli.subcommand import CommandError
from numapin_cli.what_if import Foreseen, foresee
from numapin_operator.nodes.decide import Write
from numapin_operator.observe.cache import ClusterState
from numapin_operator.policies.in_force import followed, is_state
from numapin_operator.policies.turns import node_limit


def run(options: Namespace) -> int:
    """Carry it out; returns the exit status."""
    objects = read_given(options)
    described = described_by(objects, options)
    now = time.time()
    foreseen = [foresee(described.state, node, now) for node in described.nodes]
    if not objects.of("Node"):
        _check_machine(foreseen)
    if described.unbound:
        print(f"left out: {plural(described.unbound, 'pod')} bound to no node", file=sys.stderr)
    for line in _paced(described.state, described.nodes):
        print(line, file=sys.stderr)
    if options.output == "json":
        print(
            json.dumps({"nodes": [_document(each, objects.written) for each in foreseen]}, indent=2)
        )
    elif options.output == "diff":
        _print_differences(foreseen)
    else:
        _draw(foreseen, objects)
    return 1 if any(each.is_stalled for each in foreseen) else 0


def _check_machine(foreseen: Sequence[Foreseen]) -> None:
    """Raises CommandError if the only machine cannot have the policy."""
    for each in foreseen:
        if each.is_stalled and each.outcome is not None:
            raise CommandError(
                f"policy {each.outcome.policy} on this machine: {each.outcome.message}"
            )


def _paced(state: ClusterState, nodes: Iterable[str]) -> Iterator[str]:
    """The policies of some nodes that do not change all of their nodes at the same time."""
    policies = {one.name: one for node in nodes if (one := state.governing(node))}
    for name, policy in sorted(policies.items()):
        each = (followed(state.assignments.get(node)) for node in state.governed_nodes(name))
        changing = sum(one is not None and not is_state(one, policy) for one in each)
        most = policy.spec.rollout.max_concurrent
        limit = node_limit(most, state.governed(name))
        if limit is not None and limit < changing and policy.spec.mode != "None":
            yield (
                f"policy {name}: {changing} nodes change, at most {limit} at a time"
                f" (rollout.maxConcurrent: {most}); shown is the end"
            )


def _draw(foreseen: Sequence[Foreseen], objects: Objects) -> None:
    """Print for people; only this needs the extra `cli`."""
    from numapin_cli.drawing.foreseen import draw_foreseen  # noqa: PLC0415
    from numapin_cli.drawing.text import terminal  # noqa: PLC0415

    screen, named = terminal(), bool(objects.of("Node"))
    for each in foreseen:
        sections = {
            "Why containers share CPUs": dict(why_planned_pods_share(each, objects.written)),
            "Notes": dict(notes_of_plan(each, objects.written)),
        }
        screen.print(draw_foreseen(each, sections, named=named, machine=len(foreseen) == 1))


def _document(each: Foreseen, asked: frozenset[str]) -> dict[str, object]:
    outcome, shared = each.outcome, why_planned_pods_share(each, asked)
    return {
        "node": each.picture.name,
        "policy": outcome.policy if outcome else None,
        "write": each.write.value,
        "reason": outcome.reason if outcome else None,
        "message": outcome.message if outcome else "",
        "spec": each.spec.to_wire() if each.spec else None,
        "shared": [{"pod": pod, "why": list(why)} for pod, why in shared],
        "notes": [{"pod": pod, "notes": list(notes)} for pod, notes in notes_of_plan(each, asked)],
    }


def _print_differences(foreseen: Sequence[Foreseen]) -> None:
    for each in foreseen:
        for line in _difference(each):
            print(line)
        if each.is_stalled:
            print(f"# {each.picture.name}: {each.said}")
    changed = sum(each.write is not Write.NOTHING for each in foreseen)
    print(f"# {changed} of {plural(len(foreseen), 'NodeAssignment')} would change")


def _difference(each: Foreseen) -> Iterator[str]:
    name = each.picture.name
    return unified_diff(
        _lines(each.before), _lines(each.spec), f"{name} now", f"{name} then", lineterm=""
    )


def _lines(spec: NodeAssignmentSpec | None) -> list[str]:
    """A spec as YAML with one line for each container and each refusal."""
    if spec is None:
        return []
    written = yaml.safe_dump(
        spec.to_wire(), sort_keys=False, default_flow_style=None, width=1 << 20
    )
    return written.splitlines()
