"""Read the settings, build every part, run until SIGTERM or SIGINT."""

import asyncio
import gc
import logging
import math
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Final

from pydantic_core import from_json

from numapin_api import names
from numapin_client.client import connect
from numapin_client.errors import LoginError
from numapin_client.events import Reporter
from numapin_client.login.credentials import Login
from numapin_client.login.find import find_login
from numapin_client.resources import Key
from numapin_client.transport.throttle import Throttle
from numapin_daemon.clock import SystemClock
from numapin_daemon.extras import needs_extra
from numapin_daemon.logs.lines import setup_logging
from numapin_daemon.probes.server import AddressError, serve_probes
from numapin_daemon.telemetry.export import Exporting, exporting
from numapin_daemon.telemetry.meter import Meter
from numapin_operator.api_server import ApiCluster
from numapin_operator.heartbeats.marker import Marker
from numapin_operator.heartbeats.watcher import lease_informer
from numapin_operator.installation.check import InstallationCheck
from numapin_operator.installation.leader_election import take_part
from numapin_operator.installation.leadership import Leadership
from numapin_operator.settings import Settings, parse_settings
from numapin_operator.shards.division import Portion
from numapin_operator.shards.elector import Holding, take_shards

with needs_extra("numapin-operator", "operator", {"kopf": "kopf"}):
    from numapin_operator.application import Application
    from numapin_operator.observe.policy_source.kopf_source import CHATTY_LOGGERS
    from numapin_operator.replica import Replica

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_UNUSABLE: Final = 2

USER_AGENT: Final = "numapin-operator"

MOST_SPANS: Final = 2048
"""Spans that may wait to be sent: 3 MiB of memory, and those of 500 pods."""

COLLECTOR_THRESHOLDS: Final = (5_000, 1, 100)
"""How many new objects Python's search for reference cycles looks at: 5,000, and each third time
those that survived too, at most 15,000. A search takes up to 2 us for an object, and stops every
thread. With Python's defaults it takes two fifths of the time to list all pods, and one search took
0.8 s in a simulation of 5,000 nodes.
"""

_log = logging.getLogger("numapin_operator")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the operator; the exit status is 0 after SIGTERM or SIGINT.

    With `--check` it is 0 if the installation works, else 1.
    """
    settings = parse_settings(arguments)
    setup_logging(settings.log_level, settings.log_format, chatty=CHATTY_LOGGERS)
    limit_collector()
    try:
        login = find_login(str(settings.kubeconfig or ""), os.environ)
        if settings.check:
            return EXIT_OK if asyncio.run(check(settings, login)) else EXIT_FAILED
        asyncio.run(operate(settings, login))
    except LoginError as error:
        _log.error("cannot log in to the API server", extra={"error": str(error)})
        return EXIT_UNUSABLE
    except AddressError as error:
        _log.error("cannot serve the probes", extra={"error": str(error)})
        return EXIT_UNUSABLE
    return EXIT_OK


def limit_collector() -> None:
    """Have no search for reference cycles look at objects that survived two of them.

    What the operator knows of the cluster has no cycles: it is freed when it is replaced, as ever.
    A cycle that survives two searches and is dropped later is not freed.
    """
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    if _freeze_survivors not in gc.callbacks:
        gc.callbacks.append(_freeze_survivors)


def _freeze_survivors(phase: str, info: Mapping[str, int]) -> None:
    if phase == "stop" and info["generation"] > 0:
        gc.freeze()


async def check(settings: Settings, login: Login) -> bool:
    """Look whether the installation works."""
    async with connect(login, user_agent=USER_AGENT) as api:
        return await InstallationCheck(api, settings.namespace, SystemClock()).run()


async def operate(settings: Settings, login: Login) -> None:
    """Run all parts until SIGTERM or SIGINT.

    Raises:
        AddressError: the health address is taken, or not this machine's.
        ExceptionGroup: a part failed.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    throttle = Throttle(settings.kube_api_qps, settings.kube_api_burst)
    if settings.shards > 1:
        await _share(settings, login, throttle, stop)
    else:
        await _lead_all(settings, login, throttle, stop)
    _log.info("stopped")


async def _lead_all(
    settings: Settings, login: Login, throttle: Throttle, stop: asyncio.Event
) -> None:
    """Plan all nodes while this operator leads."""
    leadership = Leadership()
    async with AsyncExitStack() as stack:
        building = _building(settings, login, throttle, leadership)
        application = await stack.enter_async_context(building)
        sent = await stack.enter_async_context(_exporting(application.meter))
        application.trace_to(sent.traces)
        await stack.enter_async_context(serve_probes(application.health(), settings.health_address))
        lead = _lead(application, leadership, settings, login)
        await _run_until(stop, application, lead)


async def _share(settings: Settings, login: Login, throttle: Throttle, stop: asyncio.Event) -> None:
    """Plan the nodes of each shard that this operator leads."""

    @asynccontextmanager
    async def build(portion: Portion, holding: Holding) -> AsyncIterator[Application]:
        leadership = holding.leadership
        share = portion, replica.meter
        async with _building(settings, login, throttle, leadership, share) as application:
            application.trace_to(sent.traces)
            yield application

    replica = Replica(settings.shards, build)
    async with AsyncExitStack() as stack:
        sent = await stack.enter_async_context(_exporting(replica.meter))
        await stack.enter_async_context(serve_probes(replica.health(), settings.health_address))
        hold = take_shards(login, settings.namespace, socket.gethostname(), replica.holdings)
        await _run_until(stop, replica, hold)


@asynccontextmanager
async def _building(
    settings: Settings,
    login: Login,
    throttle: Throttle,
    leadership: Leadership,
    share: tuple[Portion, Meter] | None = None,
) -> AsyncIterator[Application]:
    """The parts that plan all nodes, or those of a portion, with a connection of their own."""
    async with connect(login, user_agent=USER_AGENT, throttle=throttle) as api:
        api.connection.before_write = leadership.check
        api.connection.load_json = partial(from_json, cache_strings="keys")
        reporter = Reporter(f"{names.GROUP}/{names.OPERATOR_FIELD_MANAGER}", socket.gethostname())
        cluster = ApiCluster(api, reporter, settings.namespace)
        application = Application(api, cluster, leadership, login)
        wants = None
        if share is not None:
            application.serve_only(*share)
            wants = share[0].has
        marker = Marker(api, settings.namespace, reporter, application.clock)
        application.watch_heartbeats(lease_informer(api, settings.namespace, wants), marker)
        application.watch_revisions(api, settings.namespace)
        application.annotate(cpus=settings.annotate_pods, refusals=settings.annotate_refusals)
        if settings.publish_topologies:
            application.publish_topologies()
        if settings.numa_metrics:
            application.measure_numa_nodes()
        if settings.assignment_form != names.VERSION:
            application.write_old_form()
        yield application


def _exporting(meter: Meter) -> AbstractAsyncContextManager[Exporting]:
    about = {"service.instance.id": socket.gethostname()}
    return exporting(USER_AGENT, about, meter, os.environ, MOST_SPANS)


async def _run_until(
    stop: asyncio.Event, work: "Application | Replica", lead: Coroutine[Any, Any, None]
) -> None:
    """Run every part. At the end all writing stops before the Lease is released."""
    async with asyncio.TaskGroup() as tasks:
        parts = work.parts().items()
        running = [tasks.create_task(part, name=name) for name, part in parts]
        leading = tasks.create_task(lead, name="leading")
        await stop.wait()
        _log.info("stopping")
        for task in running:
            task.cancel()
        await asyncio.wait(running)
        leading.cancel()


async def _lead(
    application: Application, leadership: Leadership, settings: Settings, login: Login
) -> None:
    """Take part in the election once every kind has been listed, until cancelled."""
    await application.wait_until_listed()
    if settings.leader_elect:
        lease = Key(names.LEADER_LEASE, settings.namespace)
        await take_part(leadership, login, lease, socket.gethostname())
    else:
        leadership.extend(math.inf)
        await asyncio.Event().wait()


if __name__ == "__main__":
    sys.exit(main())
