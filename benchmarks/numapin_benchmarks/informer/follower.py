"""One process that follows the objects of all nodes, by our informer or by kopf, and measures it.

    python -m numapin_benchmarks.informer.follower KUBECONFIG FORM informer|kopf

Both keep the same values, decoded in the process's main event loop. kopf runs in a thread, with the
operator's settings, and is used as the operator uses it: for its events. The process prints what
its first list cost; after that it reads a line from its standard input, says that it is ready, and
prints what came until then and no more for a while; and so on.
"""

import argparse
import asyncio
import gc
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

import kopf
from pydantic_core import from_json

from numapin_benchmarks.informer.node_objects import FORMS, Form
from numapin_client.cache.informer import Informer
from numapin_client.client import Source, connect
from numapin_client.login.credentials import Login
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import Resource
from numapin_client.transport.library_session import open_session
from numapin_lab.played.measured_operator import Collections, Steps
from numapin_lab.processes.usage import peak_mib, resident_mib
from numapin_operator.__main__ import COLLECTOR_THRESHOLDS
from numapin_operator.observe.informers import TIMING
from numapin_operator.observe.policy_source.kopf_source import IDENTITY, build_settings

PAUSE_SECONDS = 0.02
QUIET_SECONDS = 6.0


class Tally:
    """What was taken in since the last `take`, what it cost, and how long the loop stood still."""

    def __init__(self) -> None:
        self._collections, self._steps = Collections(), Steps()
        self._late = 0.0
        self._begin()

    def _begin(self) -> None:
        self.taken, self.at = 0, time.perf_counter()
        self._begun, self._begun_cpu = self.at, time.process_time()
        self._cpu = self._begun_cpu

    def note(self) -> None:
        """Count one object."""
        self.taken += 1
        self.at, self._cpu = time.perf_counter(), time.process_time()

    async def watch_loop(self) -> None:
        """Note how late this loop wakes, until cancelled."""
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(PAUSE_SECONDS)
            self._late = max(self._late, time.perf_counter() - begun - PAUSE_SECONDS)

    async def until_quiet(self) -> None:
        """Wait until something came, and then nothing for a while."""
        while True:
            left = self.at + QUIET_SECONDS - time.perf_counter()
            if self.taken and left <= 0:
                return
            await asyncio.sleep(max(left, PAUSE_SECONDS))

    def take(self) -> dict[str, Any]:
        """The figures; begins again."""
        step, name = self._steps.take()
        cpu = self._cpu - self._begun_cpu
        found = {
            "taken": self.taken,
            "seconds": round(self.at - self._begun, 2),
            "cpu_seconds": round(cpu, 2),
            "cpu_ms_each": round(cpu / max(1, self.taken) * 1000, 3),
            "late_ms": round(self._late * 1000, 1),
            "step_ms": round(step * 1000, 1),
            "step": name,
            "collection_ms": round(self._collections.take() * 1000, 1),
            "rss_mib": round(resident_mib(os.getpid()), 1),
            "peak_mib": round(peak_mib(os.getpid()), 1),
        }
        self._late = 0.0
        self._begin()
        return found


async def follow_by_informer(login: Login, form: Form, tally: Tally) -> None:
    """Keep copies as the operator does, until cancelled."""

    def counted(decode: Callable[[Any], Any], raw: Any) -> Any:
        tally.note()
        return decode(raw)

    async with connect(login) as api, asyncio.TaskGroup() as tasks:
        api.connection.load_json = partial(from_json, cache_strings="keys")
        for resource, decode in form.decoders.items():
            informer = Informer(api, Source(resource), partial(counted, decode), timing=TIMING)
            tasks.create_task(informer.run(), name=resource.plural)


async def follow_by_kopf(login: Login, form: Form, tally: Tally) -> None:
    """Keep copies of what kopf delivers, until cancelled."""
    loop, stop = asyncio.get_running_loop(), Future[None]()
    kept: dict[tuple[str, str], Any] = {}
    registry = kopf.OperatorRegistry()

    def take(resource: Resource, event: Mapping[str, Any]) -> None:
        tally.note()
        raw = event["object"]
        key = resource.plural, raw["metadata"]["name"]
        if event["type"] == "DELETED":
            kept.pop(key, None)
        else:
            kept[key] = form.decoders[resource](raw)

    async def log_in(**_: Any) -> kopf.AiohttpSession:
        session = open_session(login, lambda *_: None)
        return kopf.AiohttpSession(server=login.server, aiohttp_session=session)

    def handler(resource: Resource) -> Callable[..., Any]:
        async def handle(event: kopf.RawEvent, **_: Any) -> None:
            loop.call_soon_threadsafe(take, resource, event)

        return handle

    kopf.on.login(registry=registry, id="log-in")(log_in)
    for resource in form.decoders:
        names = resource.group, resource.version, resource.plural
        kopf.on.event(*names, registry=registry, id=resource.plural)(handler(resource))
    try:
        await asyncio.to_thread(_run_kopf, registry, stop)
    finally:
        stop.set_result(None)


def _run_kopf(registry: kopf.OperatorRegistry, stop: "Future[None]") -> None:
    for name in ("kopf", "kopf._core.reactor.running"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with suppress(asyncio.CancelledError):
        asyncio.run(
            kopf.operator(
                registry=registry,
                settings=build_settings(),
                identity=IDENTITY,
                clusterwide=True,
                stop_flag=stop,
            )
        )


FOLLOWERS = {"informer": follow_by_informer, "kopf": follow_by_kopf}


async def measure(options: argparse.Namespace) -> None:
    """Follow, and answer each line of the standard input with the figures since then."""
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    before, tally = resident_mib(os.getpid()), Tally()
    login, form = kubeconfig_login(options.kubeconfig), FORMS[options.form]
    watching = asyncio.create_task(tally.watch_loop(), name="loop")
    following = asyncio.create_task(FOLLOWERS[options.how](login, form, tally), name="follower")
    await tally.until_quiet()
    print(json.dumps(tally.take() | {"grown_from_mib": round(before, 1)}), flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        tally.take()
        print("ready", flush=True)
        await tally.until_quiet()
        print(json.dumps(tally.take()), flush=True)
    assert not following.done()
    assert not watching.done()
    os._exit(0)  # kopf takes seconds to end


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kubeconfig")
    parser.add_argument("form", choices=sorted(FORMS))
    parser.add_argument("how", choices=sorted(FOLLOWERS))
    asyncio.run(measure(parser.parse_args()))
