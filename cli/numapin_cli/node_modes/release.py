"""`numapin release`: nodes give everything back, a few at a time."""

import shlex
import sys
from argparse import Namespace
from functools import partial
from typing import Final

from numapin_api.quantity import plural
from numapin_api.text import first_texts
from numapin_cli.fleet.label_selector import Selector
from numapin_cli.live.reader import Reader
from numapin_cli.live.server import ask_server, is_unknown_resource, said
from numapin_cli.node_modes.asking import Asking
from numapin_cli.node_modes.marks import no_such_node
from numapin_cli.node_modes.pods import ByPod
from numapin_cli.node_modes.stages import Stages, Work
from numapin_cli.subcommand import NOT_WELL, CommandError, UsageError
from numapin_client.client import ApiClient
from numapin_client.errors import ClientError, NotFoundError
from numapin_client.resources import NODE_ASSIGNMENTS, NODES, Json
from numapin_operator.observe.node_status import json_object, not_served

_NAMED: Final = 10
_NO_CRDS: Final = (
    "numapin's CRDs are gone, so that no enforcer can be asked: one that still runs releases its "
    "node 10 minutes after that; for nodes without one, give --pods"
)
_STAYS: Final = "They stay released until numapin resume, also in a later installation."


def run(options: Namespace) -> int:
    """Carry it out; returns the exit status."""
    _check(options)
    stages = ask_server(options, partial(_release, options))
    return _summary(options, stages)


def _check(options: Namespace) -> None:
    if bool(options.node) is options.all:
        raise UsageError("name nodes with --node, or give --all")
    if options.selector and not options.all:
        raise UsageError("-l chooses among all nodes; give it with --all")
    if bool(options.image) is not options.pods:
        raise UsageError("--pods needs the --image of the enforcer, and --image needs --pods")
    if options.flags and not options.pods:
        raise UsageError("flags after -- are for the enforcer in the pods of --pods")


async def _release(options: Namespace, client: ApiClient) -> Stages:
    reader = Reader(client)
    stages = Stages(await _chosen(options, reader))
    work: Work
    if options.pods:
        place = (options.namespace, options.image)
        work = ByPod(reader, place, options.flags, options.timeout).release
    else:
        work = Asking(reader, options.timeout).release
    await stages.carry_out(partial(_safely, work), options.at_once, _say)
    return stages


async def _safely(work: Work, node: str) -> str:
    """The work on one node; what the API server refuses is why it failed."""
    try:
        return await work(node)
    except ClientError as error:
        return said(error)


async def _chosen(options: Namespace, reader: Reader) -> list[str]:
    """The nodes to release.

    Raises:
        CommandError: there is no CRD, or no such node.
    """
    assigned = set[str]()
    try:
        found = await reader.metadata(NODE_ASSIGNMENTS, lambda one: str(one["name"]))
        assigned.update(found)
    except NotFoundError as error:
        if not is_unknown_resource(error):
            raise
        if not options.pods:
            raise CommandError(_NO_CRDS) from error
    if options.all:
        return await _all(options, reader, assigned)
    for name in options.node:
        if name not in assigned and not await reader.named_nodes([name]):
            raise await no_such_node(reader, name)
    return list(dict.fromkeys(options.node))


async def _all(options: Namespace, reader: Reader, assigned: set[str]) -> list[str]:
    """Every node that has an assignment; by pods every one whose kubelet can run one."""
    selector = Selector.parse(options.selector)
    if not options.pods and not selector.requirements:
        return sorted(assigned)
    nodes = await reader.each(NODES, _node)
    if options.pods and (away := [name for name, _, reason in nodes if reason]):
        text = f"{plural(len(away), 'node')} cannot run a pod now: {first_texts(away, _NAMED)}"
        print(f"left out: {text}", file=sys.stderr)
    return sorted(
        name
        for name, labels, reason in nodes
        if selector.selects(labels) and (not reason if options.pods else name in assigned)
    )


def _node(body: Json) -> tuple[str, dict[str, str], str]:
    """The name and labels of a Node, and why no pod can run there; empty if one can."""
    metadata = body["metadata"]
    reason = not_served(json_object(body, "status"))
    return metadata["name"], dict(json_object(metadata, "labels")), reason or ""


def _say(stages: Stages, node: str) -> None:
    """Say what has become of a node, and how far all are."""
    why = stages.failed.get(node)
    became = f"not released: {why}" if why else "released"
    print(f"node/{node} {became} ({len(stages.done)} of {len(stages.nodes)})", flush=True)


def _summary(options: Namespace, stages: Stages) -> int:
    """Say what is left and how to go on; returns the exit status."""
    if not stages.nodes:
        print("no node has a NodeAssignment: there is nothing to release")
    if not stages.left:
        if stages.nodes and not options.pods:
            print(_STAYS, file=sys.stderr)
        return 0
    left = f"{plural(len(stages.left), 'node')} left: {first_texts(stages.left, _NAMED)}"
    again = shlex.join(["numapin", "release", *_words(options)])
    print(f"{left}\nGo on with: {again}", file=sys.stderr)
    return NOT_WELL


def _words(options: Namespace) -> list[str]:
    """The flags that choose nodes, as they were given."""
    words = ["--all"] if options.all else [f"--node={name}" for name in options.node]
    words += [f"-l={options.selector}"] if options.selector else []
    return words + (["--pods", f"--image={options.image}"] if options.pods else [])
