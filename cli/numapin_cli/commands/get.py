"""`numapin get`: which containers have which CPUs of each node, as decided and as in the kernel."""

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final

from numapin_api.names import NODE_ASSIGNMENT_KIND
from numapin_cli.arguments import reads_files
from numapin_cli.drawing.documents import document
from numapin_cli.inputs.input_flags import say_notes
from numapin_cli.inputs.manifests import Manifest
from numapin_cli.inputs.objects import read_objects
from numapin_cli.live.follow import follow
from numapin_cli.live.node_parts import NodeParts
from numapin_cli.live.node_state import NodeState
from numapin_cli.live.reader import Reader, together
from numapin_cli.live.screen import Screen
from numapin_cli.live.server import ask_server
from numapin_cli.near_names import did_you_mean
from numapin_cli.numa_free import Found, in_objects, on_server
from numapin_cli.subcommand import CommandError
from numapin_client.client import ApiClient
from numapin_client.errors import ForbiddenError
from numapin_client.resources import NODE_ASSIGNMENTS, NODES

_LINE: Final = 10_000
"""Columns of `-o wide`: each node stays on one line."""

_WIDE: Final = 120
"""Columns of a machine in `-o wide`."""


def run(options: Namespace) -> int:
    """Carry it out; returns the exit status."""
    text_of = partial(_text, options)
    if reads_files(options):
        sys.stdout.write(text_of(_in_files(options)))
        return 0
    text_of([])  # what it draws with is missing, or not
    if options.watch:
        ask_server(options, partial(_follow, options, Screen(text_of)))
    sys.stdout.write(text_of(ask_server(options, partial(_read, options))))
    return 0


async def _follow(options: Namespace, screen: Screen[list[NodeState]], client: ApiClient) -> None:
    one = options.nodes[0] if len(options.nodes) == 1 else ""
    sources = await NodeParts(Reader(client)).sources(one)
    await follow(client, sources, partial(_read, options, client), screen.show)


async def _read(options: Namespace, client: ApiClient) -> list[NodeState]:
    reader = Reader(client)
    parts = NodeParts(reader)
    if not options.nodes:
        found = {one.name: one for one in await parts.all()}
        try:
            names = {key.name for key in await reader.names(NODES)}
        except ForbiddenError:
            names = set[str]()
        say_notes(parts.notes.values())
        return _states(sorted(names | found.keys()), found)
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
    return _states(options.nodes, found, dict(zip(found, numa_nodes, strict=True)))


def _in_files(options: Namespace) -> list[NodeState]:
    objects = read_objects(options.cluster, [])
    say_notes(objects.notes)
    found, nodes = objects.of(NODE_ASSIGNMENT_KIND), objects.of("Node")
    for name in options.nodes:
        _check_exists(name, {*found, *nodes})
    numa_nodes = {name: in_objects(objects, name) for name in options.nodes if name in nodes}
    say_notes(why for _, why in numa_nodes.values() if why)
    return _states(options.nodes or sorted({*found, *nodes}), found, numa_nodes)


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


def _text(options: Namespace, states: Sequence[NodeState]) -> str:
    if options.output in {"json", "yaml"}:
        return document({"nodes": [state.to_json() for state in states]}, options.output)
    from numapin_cli.drawing.nodes import draw_node, draw_nodes  # noqa: PLC0415
    from numapin_cli.drawing.text import rendered  # noqa: PLC0415

    wide = options.output == "wide"
    if not options.nodes:
        table = draw_nodes(states, wide=wide)
        return rendered(table, _LINE if wide else 0) if states else "there is no node\n"
    width = _WIDE if wide else 0
    return "".join(rendered(draw_node(state, wide=wide), width) for state in states)
