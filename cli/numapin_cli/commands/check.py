"""`numapin check`: what else runs on the exclusive CPUs of a node, or of a pod."""

import asyncio
import sys
import time
from argparse import Namespace
from functools import partial
from typing import Final, NamedTuple

from numapin_cli.asked.target import NODE, POD, POLICY, Target, parse_target
from numapin_cli.inputs.manifests import Manifest, section
from numapin_cli.live.enforcer_page import EnforcerPage
from numapin_cli.live.reader import Reader
from numapin_cli.live.server import ask_server
from numapin_cli.noise.as_json import to_json
from numapin_cli.noise.measured import Measured, measure
from numapin_cli.noise.page import Page
from numapin_cli.scripting.documents import document
from numapin_cli.subcommand import NOT_WELL, CommandError, UsageError
from numapin_client.client import ApiClient
from numapin_client.resources import PODS, Key

MOST_READS: Final = 30
"""How often the page is read, if that is not too often."""

LEAST_PAUSE_SECONDS: Final = 1.0
"""Between two reads; a task that ends in between is missed."""

PATIENCE_SECONDS: Final = 60.0
"""How much longer it may take: an enforcer makes a large page less often than it is asked."""

_DEFAULT_NAMESPACE: Final = "default"


class _Place(NamedTuple):
    """Where to measure: a node, and the pod that was named, if one was."""

    node: str
    pod: str = ""
    pod_uid: str = ""


def run(options: Namespace) -> int:
    """Carry it out; returns the exit status."""
    target = parse_target(options.target, options.namespace)
    if target.kind == POLICY:
        raise UsageError("a policy has no CPUs; give pod/NAME or node/NAME")
    if options.output == "text":
        _text(Measured("", 1.0, (), ()), "text")  # what it draws with is missing, or not
    measured = ask_server(options, partial(_measure, options, target))
    sys.stdout.write(_text(measured, options.output))
    return NOT_WELL if measured.is_disturbed else 0


async def _measure(options: Namespace, target: Target, client: ApiClient) -> Measured:
    reader = Reader(client)
    place = await _place(reader, target, client.connection.login.namespace or _DEFAULT_NAMESPACE)
    page = await EnforcerPage.find(reader, place.node, options.numapin_namespace)
    if options.output == "text" and sys.stderr.isatty():
        print(f"measuring node {place.node} for {options.seconds:g} s ...", file=sys.stderr)
    pages = await _pages(page, options.seconds)
    measured = measure(place.node, pages, place.pod_uid)
    if place.pod and not measured.groups and not measured.notes:
        raise CommandError(
            f"no container of pod {place.pod} has exclusive CPUs in force on node {place.node};"
            f" numapin explain pod/{place.pod.partition('/')[2]} says why"
        )
    return measured


async def _place(reader: Reader, target: Target, namespace: str) -> _Place:
    """Where the target is; a name without a kind is that of a pod, else of a node."""
    if target.kind == NODE:
        return _Place(target.name)
    key = Key(target.name, target.namespace or namespace)
    read = reader.one if target.kind == POD else reader.one_if_allowed
    found = await read(PODS, key)
    if found is not None:
        return _place_of(found, str(key))
    if target.kind == POD or target.namespace:
        raise CommandError(f"there is no pod {key.name} in namespace {key.namespace}")
    return _Place(target.name)


def _place_of(pod: Manifest, name: str) -> _Place:
    node = str(section(pod.content, "spec").get("nodeName") or "")
    if not node:
        raise CommandError(f"pod {name} is on no node yet")
    return _Place(node, name, str(pod.metadata["uid"]))


async def _pages(page: EnforcerPage, seconds: float) -> list[Page]:
    """The page as it is now, and from time to time until it is so much later.

    Raises:
        CommandError: the node was started again, or its enforcer makes no second page.
    """
    pages = [await page.read()]
    until_seconds = time.monotonic() + seconds + PATIENCE_SECONDS
    pause_seconds = max(LEAST_PAUSE_SECONDS, seconds / MOST_READS)
    while (left := seconds - (pages[-1].taken_seconds - pages[0].taken_seconds)) > 0:
        if time.monotonic() > until_seconds:
            raise CommandError("the enforcer makes no new page; is the node overloaded?")
        await asyncio.sleep(min(pause_seconds, left) if left > 0.05 else 0.05)
        now = await page.read()
        if now.taken_seconds < pages[-1].taken_seconds:
            raise CommandError("the node was started again; measure again")
        if now.taken_seconds > pages[-1].taken_seconds:
            pages.append(now)
    return pages


def _text(measured: Measured, output: str) -> str:
    if output != "text":
        return document(to_json(measured), output)
    from numapin_cli.drawing.noise import draw_noise  # noqa: PLC0415
    from numapin_cli.drawing.text import rendered  # noqa: PLC0415

    return rendered(draw_noise(measured))
