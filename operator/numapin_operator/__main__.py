"""Read the settings, build every part, run until SIGTERM or SIGINT."""

import asyncio
import gc
import logging
import math
import os
import signal
import socket
import sys
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
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
from numapin_daemon.telemetry.export import exporting
from numapin_operator.api_server import ApiCluster
from numapin_operator.heartbeats.marker import Marker
from numapin_operator.heartbeats.watcher import lease_informer
from numapin_operator.installation.check import InstallationCheck
from numapin_operator.installation.leader_election import take_part
from numapin_operator.installation.leadership import Leadership
from numapin_operator.settings import Settings, parse_settings

with needs_extra("numapin-operator", "operator", {"kopf": "kopf"}):
    from numapin_operator.application import Application
    from numapin_operator.observe.policy_source.kopf_source import CHATTY_LOGGERS

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
    leadership = Leadership()
    async with AsyncExitStack() as stack:
        throttle = Throttle(settings.kube_api_qps, settings.kube_api_burst)
        api = await stack.enter_async_context(
            connect(login, user_agent=USER_AGENT, throttle=throttle)
        )
        api.connection.before_write = leadership.check
        api.connection.load_json = partial(from_json, cache_strings="keys")
        reporter = Reporter(f"{names.GROUP}/{names.OPERATOR_FIELD_MANAGER}", socket.gethostname())
        cluster = ApiCluster(api, reporter, settings.namespace)
        application = Application(api, cluster, leadership, login)
        marker = Marker(api, settings.namespace, reporter, application.clock)
        application.watch_heartbeats(lease_informer(api, settings.namespace), marker)
        application.watch_revisions(api, settings.namespace)
        application.annotate(cpus=settings.annotate_pods, refusals=settings.annotate_refusals)
        if settings.assignment_form != names.VERSION:
            application.write_old_form()
        about = {"service.instance.id": socket.gethostname()}
        sent = await stack.enter_async_context(
            exporting(USER_AGENT, about, application.meter, os.environ, MOST_SPANS)
        )
        application.trace_to(sent.traces)
        await stack.enter_async_context(serve_probes(application.health(), settings.health_address))
        await _run_until(stop, application, _lead(application, leadership, settings, login))
    _log.info("stopped")


async def _run_until(
    stop: asyncio.Event, application: Application, lead: Coroutine[Any, Any, None]
) -> None:
    """Run every part. At the end all writing stops before the Lease is released."""
    async with asyncio.TaskGroup() as tasks:
        parts = application.parts().items()
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
