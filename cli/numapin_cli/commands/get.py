"""`numapin get`: which containers have which CPUs of each node, as decided and as in the kernel."""

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from numapin_api.names import NODE_ASSIGNMENT_KIND
from numapin_cli.arguments import is_document, reads_files
from numapin_cli.fleet.label_selector import Selector
from numapin_cli.fleet.node_rows import NodeRow, in_order, of_policy, summaries
from numapin_cli.fleet.read_rows import FleetReader, policies_in_files, rows_in_files
from numapin_cli.inputs.input_flags import say_notes
from numapin_cli.inputs.manifests import Manifest
from numapin_cli.inputs.objects import Objects, read_objects
from numapin_cli.live.follow import follow
from numapin_cli.live.node_parts import NodeParts
from numapin_cli.live.node_state import NodeState
from numapin_cli.live.reader import Reader, together
from numapin_cli.live.screen import Screen
from numapin_cli.live.server import ask_server
from numapin_cli.near_names import did_you_mean
from numapin_cli.numa_free import Found, in_objects, on_server
from numapin_cli.scripting.documents import document
from numapin_cli.subcommand import CommandError, UsageError
from numapin_client.client import ApiClient
from numapin_client.resources import NODE_ASSIGNMENTS, NODES, Key
from numapin_operator.observe.node_mode import node_mode

_LINE: Final = 10_000
"""Columns of `-o wide`: each node stays on one line."""

_WIDE: Final = 120
"""Columns of a machine in `-o wide`."""


def run(options: Namespace) -> int:
    """Carry it out; returns the exit status."""
    _check(options)
    if options.nodes:
        return _answer(options, _named_text, _named_in_files, _read_named)
    return _answer(options, _listed_text, _listed_in_files, _read_listed)


def _check(options: Namespace) -> None:
    """Raises UsageError for flags that do not go together."""
    chosen = options.selector or options.policy or options.not_ready or options.summary
    if options.nodes and chosen:
        raise UsageError("-l, --policy, --not-ready and --summary are for all nodes; name no NODE")
    if options.summary and options.output == "name":
        raise UsageError("--summary names no node; leave out -o name")


def _answer(
    options: Namespace,
    text_of: Callable[[Namespace, Any], str],
    in_files: Callable[[Namespace, Objects], Any],
    read: Callable[[Namespace, ApiClient], Any],
) -> int:
    if reads_files(options):
        objects = read_objects(options.cluster, [])
        say_notes(objects.notes)
        sys.stdout.write(text_of(options, in_files(options, objects)))
        return 0
    text_of(options, [])  # what it draws with is missing, or not
    if options.watch:
        screen = Screen[Any](partial(text_of, options))
        ask_server(options, partial(_follow, options, screen, partial(read, options)))
    sys.stdout.write(text_of(options, ask_server(options, partial(read, options))))
    return 0


async def _follow(
    options: Namespace,
    screen: Screen[Any],
    read: Callable[[ApiClient], Any],
    client: ApiClient,
) -> None:
    one = options.nodes[0] if len(options.nodes) == 1 else ""
    sources = await NodeParts(Reader(client)).sources(one)
    await follow(client, sources, partial(read, client), screen.show)


async def _read_listed(options: Namespace, client: ApiClient) -> list[NodeRow]:
    fleet = FleetReader(Reader(client), with_documents=_has_documents(options))
    rows = await fleet.rows(Selector.parse(options.selector))
    policies = await fleet.policies() if options.policy else ()
    say_notes(fleet.parts.notes.values())
    return _chosen(options, rows, policies)


def _listed_in_files(options: Namespace, objects: Objects) -> list[NodeRow]:
    selector, with_documents = Selector.parse(options.selector), _has_documents(options)
    rows = rows_in_files(objects, selector, with_documents=with_documents)
    return _chosen(options, rows, policies_in_files(objects))


def _has_documents(options: Namespace) -> bool:
    return is_document(options.output) and not options.summary


def _chosen(options: Namespace, rows: list[NodeRow], policies: Iterable[str]) -> list[NodeRow]:
    if options.policy:
        rows = of_policy(rows, options.policy, policies)
    if options.not_ready:
        rows = [row for row in rows if row.is_governed and not row.is_ready]
    return in_order(rows, options.sort)


def _listed_text(options: Namespace, rows: Sequence[NodeRow]) -> str:
    if options.output == "name":
        return "".join(f"node/{row.name}\n" for row in rows)
    if is_document(options.output):
        return document(_listed_document(options, rows), options.output)
    from numapin_cli.drawing.fleet import draw_rows, draw_summaries  # noqa: PLC0415
    from numapin_cli.drawing.text import rendered  # noqa: PLC0415

    if not rows:
        return "no node matches\n" if _is_filtered(options) else "there is no node\n"
    if options.summary:
        return rendered(draw_summaries(summaries(rows)))
    wide = options.output == "wide"
    return rendered(draw_rows(rows, wide=wide), _LINE if wide else 0)


def _listed_document(options: Namespace, rows: Sequence[NodeRow]) -> dict[str, Any]:
    if options.summary:
        return {"policies": [one.to_json() for one in summaries(rows)]}
    return {
        "nodes": [
            row.document or NodeState(row.name, node_mode=row.node_mode).to_json() for row in rows
        ]
    }


def _is_filtered(options: Namespace) -> bool:
    return bool(options.selector or options.policy or options.not_ready)


async def _read_named(options: Namespace, client: ApiClient) -> list[NodeState]:
    reader = Reader(client)
    parts = NodeParts(reader)
    listed = await together(parts.one(name) for name in options.nodes)
    found = {one.name: one for one in listed if one is not None}
    for name in options.nodes:
        if name not in found:
            known = {key.name for key in await reader.names_if_allowed(NODES)}
            known |= {key.name for key in await reader.names_if_allowed(NODE_ASSIGNMENTS)}
            _check_exists(name, known)
    say_notes(parts.notes.values())
    numa_nodes = await together(on_server(reader, name) for name in found)
    say_notes(why for _, why in numa_nodes if why)
    nodes = await together(reader.one_if_allowed(NODES, Key(name)) for name in options.nodes)
    states = _states(options.nodes, found, dict(zip(found, numa_nodes, strict=True)))
    return _with_modes(states, {one.name: one for one in nodes if one is not None})


def _named_in_files(options: Namespace, objects: Objects) -> list[NodeState]:
    found, nodes = objects.of(NODE_ASSIGNMENT_KIND), objects.of("Node")
    for name in options.nodes:
        _check_exists(name, {*found, *nodes})
    numa_nodes = {name: in_objects(objects, name) for name in options.nodes if name in nodes}
    say_notes(why for _, why in numa_nodes.values() if why)
    return _with_modes(_states(options.nodes, found, numa_nodes), nodes)


def _with_modes(states: Iterable[NodeState], nodes: Mapping[str, Manifest]) -> list[NodeState]:
    """The nodes as the annotations of their Nodes have them, as far as these may be read."""
    return [
        replace(one, node_mode=node_mode(nodes[one.name].metadata)) if one.name in nodes else one
        for one in states
    ]


def _check_exists(name: str, known: set[str]) -> None:
    if name not in known:
        raise CommandError(f"there is no node {name}; {did_you_mean(name, known)}")


def _states(
    names: Sequence[str],
    found: Mapping[str, Manifest],
    numa_nodes: Mapping[str, tuple[Found, str]] = MappingProxyType({}),
) -> list[NodeState]:
    return [
        replace(
            NodeState.decode(found[name].content) if name in found else NodeState(name),
            numa_nodes=numa_nodes[name][0] if name in numa_nodes else {},
        )
        for name in names
    ]


def _named_text(options: Namespace, states: Sequence[NodeState]) -> str:
    if options.output == "name":
        return "".join(f"node/{state.name}\n" for state in states)
    if is_document(options.output):
        return document({"nodes": [state.to_json() for state in states]}, options.output)
    from numapin_cli.drawing.nodes import draw_node  # noqa: PLC0415
    from numapin_cli.drawing.text import rendered  # noqa: PLC0415

    wide = options.output == "wide"
    width = _WIDE if wide else 0
    return "".join(rendered(draw_node(state, wide=wide), width) for state in states)
