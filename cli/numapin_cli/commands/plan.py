"""`numapin plan`: what the operator would write for nodes that files describe."""

import sys
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from functools import partial

import yaml

from numapin_api.quantity import plural
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_cli.advice.eligibility import why_planned_pods_share
from numapin_cli.advice.notes import notes_of_plan
from numapin_cli.inputs.described_cluster import DescribedCluster, in_a_cluster
from numapin_cli.inputs.input_flags import described_by, given_machine, read_given, say_notes
from numapin_cli.inputs.manifests import Manifest, in_namespace, read_manifests
from numapin_cli.inputs.objects import Objects
from numapin_cli.live.observed import Observed
from numapin_cli.live.reader import Reader
from numapin_cli.live.screen import Progress
from numapin_cli.live.server import ask_server
from numapin_cli.live.whole_cluster import WholeCluster
from numapin_cli.scripting.documents import json_list
from numapin_cli.subcommand import CommandError, Faults, UsageError
from numapin_cli.what_if import Foreseen, foresee
from numapin_client.client import ApiClient
from numapin_operator.nodes.decide import Write
from numapin_operator.observe.cache import ClusterState
from numapin_operator.policies.in_force import followed, is_state
from numapin_operator.policies.turns import node_limit


def run(options: Namespace) -> int:
    """Carry it out; returns the exit status."""
    if options.live:
        return _run_live(options)
    objects = read_given(options)
    return _answer(options, objects, described_by(objects, options), Progress())


def _run_live(options: Namespace) -> int:
    if options.cluster:
        raise UsageError("--live reads the cluster itself; leave out --cluster")
    if options.output == "text":
        from numapin_cli.drawing.text import terminal  # noqa: F401, PLC0415 - missing, or not
    progress, faults = Progress(), Faults()
    written = in_namespace(read_manifests(options.filename, faults), options.namespace)
    faults.check()
    objects, observed = ask_server(options, partial(_read, written, progress))
    progress.clear()
    say_notes(objects.notes)
    described = in_a_cluster(objects, given_machine(options), options.node, observed)
    return _answer(options, objects, described, progress)


async def _read(
    written: Sequence[Manifest], progress: Progress, client: ApiClient
) -> tuple[Objects, Observed]:
    whole = WholeCluster(Reader(client, progress.read), written)
    found = await whole.read()
    say_notes(whole.parts.notes.values())
    return found


def _answer(
    options: Namespace, objects: Objects, described: DescribedCluster, progress: Progress
) -> int:
    """Print what is foreseen for each node as soon as it is: nothing is kept of thousands."""
    stalled = list[str]()
    foreseen = _foreseen(described, progress, stalled)
    if not objects.of("Node"):
        foreseen = _checked(foreseen)
    if described.unbound:
        print(f"left out: {plural(described.unbound, 'pod')} bound to no node", file=sys.stderr)
    for line in _paced(described.state, described.nodes):
        print(line, file=sys.stderr)
    if options.output == "json":
        for part in json_list("nodes", (_document(each, objects.written) for each in foreseen)):
            sys.stdout.write(part)
    elif options.output == "diff":
        _print_differences(foreseen)
    else:
        _draw(foreseen, objects, described, only_changed=options.live)
    return 1 if stalled else 0


def _foreseen(
    described: DescribedCluster, progress: Progress, stalled: list[str]
) -> Iterator[Foreseen]:
    """What is foreseen for each node; `stalled` takes the names of those that are."""
    now, count = time.time(), len(described.nodes)
    for number, node in enumerate(described.nodes, start=1):
        progress.show(f"planning node {number:,} of {count:,}")
        found = foresee(described.state, node, now)
        if found.is_stalled:
            stalled.append(node)
        progress.clear()
        yield found


def _checked(foreseen: Iterable[Foreseen]) -> Iterator[Foreseen]:
    """The same; raises CommandError if the only machine cannot have the policy."""
    for each in foreseen:
        if each.is_stalled and each.outcome is not None:
            raise CommandError(
                f"policy {each.outcome.policy} on this machine: {each.outcome.message}"
            )
        yield each


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


def _draw(
    foreseen: Iterable[Foreseen],
    objects: Objects,
    described: DescribedCluster,
    *,
    only_changed: bool,
) -> None:
    """Print for people; only this needs the extra `cli`."""
    from numapin_cli.drawing.foreseen import draw_foreseen  # noqa: PLC0415
    from numapin_cli.drawing.text import terminal  # noqa: PLC0415

    screen, named = terminal(), bool(objects.of("Node"))
    is_alone, shown = len(described.nodes) == 1, 0
    for each in foreseen:
        if only_changed and each.write is Write.NOTHING and not each.is_stalled:
            continue
        shown += 1
        sections = {
            "Why containers share CPUs": dict(why_planned_pods_share(each, objects.written)),
            "Notes": dict(notes_of_plan(each, objects.written)),
        }
        screen.print(draw_foreseen(each, sections, named=named, machine=is_alone))
    if only_changed:
        left = len(described.nodes) - shown
        screen.print(f"{plural(left, 'node')} left out: nothing changes there")


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


def _print_differences(foreseen: Iterable[Foreseen]) -> None:
    changed, count = 0, 0
    for each in foreseen:
        changed, count = changed + (each.write is not Write.NOTHING), count + 1
        for line in _difference(each):
            print(line)
        if each.is_stalled:
            print(f"# {each.picture.name}: {each.said}")
    print(f"# {changed} of {plural(count, 'NodeAssignment')} would change")


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
