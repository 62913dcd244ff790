"""`numapin serve`: a cluster, or a report, as a page in the browser until it is interrupted."""

import asyncio
import logging
import socket
import sys
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NoReturn

from aiohttp import web

from numapin_cli.inputs.described_cluster import DescribedCluster, in_a_cluster
from numapin_cli.inputs.input_flags import say_notes
from numapin_cli.inputs.manifests import Manifest, read_manifests
from numapin_cli.inputs.objects import read_objects
from numapin_cli.live.reader import Reader
from numapin_cli.live.server import ask_server
from numapin_cli.live.whole_cluster import WholeCluster
from numapin_cli.subcommand import CommandError, Faults
from numapin_client.client import ApiClient
from numapin_daemon.version import VERSION
from numapin_page.live.answers import FileAnswers, ServerAnswers
from numapin_page.live.file_parts import FileParts
from numapin_page.live.fleet import Fleet
from numapin_page.live.planned import Planned
from numapin_page.live.server_parts import ServerParts
from numapin_page.web.hosts import is_loopback, known_hosts
from numapin_page.web.server import Site

_ABOUT: Final = {"version": VERSION}
_LOOK_SECONDS: Final = 1.0
"""How often it is looked whether the API server still answers."""

_OPEN: Final = (
    "note: whoever reaches {address} sees the names of pods and what they have; numapin serve asks"
    " nobody who he is"
)


def run(options: Namespace) -> int:
    """Serve until interrupted; returns the exit status."""
    logging.getLogger("numapin_client").addHandler(logging.NullHandler())  # the page says it
    faults = Faults()
    written = read_manifests(options.filename, faults)
    faults.check()
    with _bound(options.address, options.port) as opened:
        if not is_loopback(options.address):
            print(_OPEN.format(address=options.address), file=sys.stderr)
        if options.cluster:
            return asyncio.run(_serve_files(options, opened))
        return ask_server(options, partial(_serve_cluster, options, opened, written))


def _bound(address: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        CommandError: the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family)
    except (OSError, OverflowError) as error:
        raise CommandError(
            f"cannot listen on {address}, port {port}: {error}; choose with --address and --port"
        ) from error


async def _serve_files(options: Namespace, opened: socket.socket) -> NoReturn:
    objects = read_objects(options.cluster, [])
    say_notes(objects.notes)
    parts = FileParts(objects, ", ".join(map(str, options.cluster)))
    fleet = Fleet()
    fleet.changed(parts.names())
    await fleet.refresh(parts)
    planned = Planned(partial(_in_files, options)) if options.filename else None
    hosts = _hosts(options, opened)
    site = Site(fleet, parts, FileAnswers(objects), hosts, _ABOUT, planned)
    async with asyncio.TaskGroup() as tasks:
        if planned is not None:
            tasks.create_task(planned.run(), name="plan")
        await _listen(opened, site)
    raise AssertionError("it serves until it is cancelled")


async def _in_files(options: Namespace) -> DescribedCluster:
    """The cluster of files with the edit applied to it."""
    return in_a_cluster(read_objects(options.cluster, options.filename), None, None)


async def _serve_cluster(
    options: Namespace, opened: socket.socket, written: Sequence[Manifest], client: ApiClient
) -> NoReturn:
    fleet = Fleet()
    parts = ServerParts(client, fleet.changed)
    planned = Planned(partial(_on_server, written, client)) if options.filename else None
    hosts = _hosts(options, opened)
    site = Site(fleet, parts, ServerAnswers(client), hosts, _ABOUT, planned)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(parts.run(), name="follow")
        tasks.create_task(fleet.run(parts), name="lines")
        tasks.create_task(_look(fleet, parts), name="look")
        if planned is not None:
            tasks.create_task(planned.run(), name="plan")
        await _listen(opened, site)
    raise AssertionError("it serves until it is cancelled")


async def _on_server(written: Sequence[Manifest], client: ApiClient) -> DescribedCluster:
    """The cluster as it is now with the edit applied to it."""
    objects, observed = await WholeCluster(Reader(client), written).read()
    return in_a_cluster(objects, None, None, observed)


async def _look(fleet: Fleet, parts: ServerParts) -> NoReturn:
    """Wake the readers when the API server begins or ceases to answer."""
    before: Any = None
    while True:
        if (status := parts.status()) != before:
            before = status
            fleet.wake()
        await asyncio.sleep(_LOOK_SECONDS)


def _hosts(options: Namespace, opened: socket.socket) -> frozenset[str]:
    return known_hosts(options.address, opened.getsockname()[1], options.host)


async def _listen(opened: socket.socket, site: Site) -> NoReturn:
    """Serve until cancelled."""
    runner = web.AppRunner(
        site.application(), access_log=None, shutdown_timeout=0.2, handler_cancellation=True
    )
    await runner.setup()
    try:
        await web.SockSite(runner, opened).start()
        address, port = opened.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        print(f"http://{shown}:{port}/  (Ctrl-C ends it)", flush=True)
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
    raise AssertionError("it serves until it is cancelled")
