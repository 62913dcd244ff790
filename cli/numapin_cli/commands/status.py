"""`numapin status`: whether numapin is well in a cluster, on one screen."""

import asyncio
import sys
import time
from argparse import Namespace
from functools import partial
from typing import Final

from numapin_api.quantity import plural
from numapin_cli.fleet.overview import Overview
from numapin_cli.fleet.read_overview import OverviewReader
from numapin_cli.inputs.input_flags import say_notes
from numapin_cli.live.reader import Reader
from numapin_cli.live.server import ask_server
from numapin_cli.scripting.documents import document
from numapin_cli.subcommand import NOT_WELL, UsageError
from numapin_client.client import ApiClient

_LEAST_PAUSE_SECONDS: Final = 2.0
_PAUSES: Final = 4
"""A pause lasts at least as many times as the read before it: waiting must not load a server."""


def run(options: Namespace) -> int:
    """Carry it out; returns the exit status."""
    if options.timeout is not None and not options.wait:
        raise UsageError("--timeout is how long --wait waits; add --wait")
    if options.output == "text":
        from numapin_cli.drawing.text import rendered  # noqa: F401, PLC0415 - missing, or not
    overview = ask_server(options, partial(_wait if options.wait else _read, options))
    say_notes(overview.notes)
    sys.stdout.write(_text(options, overview))
    return 0 if overview.is_ready else NOT_WELL


async def _read(options: Namespace, client: ApiClient) -> Overview:
    return await OverviewReader(Reader(client), options.namespace).read()


async def _wait(options: Namespace, client: ApiClient) -> Overview:
    """Read until all is Ready, or until the time is over."""
    begun, said = time.monotonic(), ""
    until = begun + (options.timeout if options.timeout is not None else float("inf"))
    while True:
        asked = time.monotonic()
        overview = await _read(options, client)
        now = time.monotonic()
        if overview.is_ready or now >= until:
            return overview
        if (progress := _progress(overview)) != said:
            said = progress
            print(f"waiting: {progress}", file=sys.stderr, flush=True)
        pause = max(_LEAST_PAUSE_SECONDS, _PAUSES * (now - asked))
        await asyncio.sleep(min(pause, until - now))


def _progress(overview: Overview) -> str:
    waited_for = overview.waited_for
    ready = sum(row.is_ready for row in waited_for)
    blocking = [one.what for one in overview.concerns if not one.is_ready]
    return f"{ready} of {plural(len(waited_for), 'node')} Ready; {blocking[0]}"


def _text(options: Namespace, overview: Overview) -> str:
    if options.output != "text":
        return document(overview.to_json(), options.output)
    from numapin_cli.drawing.fleet import draw_overview  # noqa: PLC0415
    from numapin_cli.drawing.text import rendered  # noqa: PLC0415

    return rendered(draw_overview(overview))
