"""Read settings, build every part, run until told to stop."""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

from numapin_api import names
from numapin_client.client import ApiClient, connect
from numapin_client.errors import LoginError
from numapin_client.login.credentials import Login
from numapin_client.login.find import find_login
from numapin_client.resources import Key
from numapin_daemon.logs import setup_logging
from numapin_operator.application import Application, Standalone
from numapin_operator.cluster import ApiCluster
from numapin_operator.health import CannotListenError, build_application, serve
from numapin_operator.leader_election import Candidate, candidacy
from numapin_operator.observe.kopf_source import CHATTY_LOGGERS
from numapin_operator.settings import Settings, parse_settings

EXIT_UNUSABLE: Final = 2

COLLECTOR_THRESHOLDS: Final = (100_000, 50, 100)
"""How rarely Python looks for cycles. What the API server sends has none, and comes by 100,000
objects at a time: by default two fifths of the time of listing all pods go into the search."""

_log = logging.getLogger("numapin_operator")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the operator; the exit status is 0 after SIGTERM or SIGINT."""
    settings = parse_settings(arguments)
    setup_logging(settings.log_level, settings.log_format, chatty=CHATTY_LOGGERS)
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    try:
        login = find_login(str(settings.kubeconfig or ""), os.environ)
        asyncio.run(operate(settings, login))
    except LoginError as error:
        _log.error("no way to reach the API server", extra={"error": str(error)})
        return EXIT_UNUSABLE
    except CannotListenError as error:
        _log.error("no place for the probe pages", extra={"error": str(error)})
        return EXIT_UNUSABLE
    return 0


async def operate(settings: Settings, login: Login) -> None:
    """Run all parts until SIGTERM or SIGINT.

    Raises:
        CannotListenError: the health address is not to be had.
        ExceptionGroup: a part failed.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(connect(login, user_agent="numapin-operator"))
        leadership = _leadership(settings, api)
        cluster = ApiCluster(api, socket.gethostname())
        application = Application(api, cluster, leadership.leading, login)
        pages = build_application(application.health())
        runner = await serve(pages, settings.health_address)
        stack.push_async_callback(runner.cleanup)
        await _run_until(stop, application, leadership)
    _log.info("stopped")


def _leadership(settings: Settings, api: ApiClient) -> Candidate | Standalone:
    if not settings.leader_elect:
        return Standalone()
    lease = Key(names.LEADER_LEASE, settings.namespace)
    return Candidate(api, lease, socket.gethostname())


async def _run_until(
    stop: asyncio.Event, application: Application, leadership: Candidate | Standalone
) -> None:
    """Run every part; at the end nothing is written any more before the lead is handed on."""
    async with asyncio.TaskGroup() as tasks:
        parts = application.parts().items()
        running = [tasks.create_task(part, name=name) for name, part in parts]
        leading = tasks.create_task(_lead(application, leadership), name="leading")
        await stop.wait()
        _log.info("stopping")
        for task in running:
            task.cancel()
        await asyncio.wait(running)
        leading.cancel()


async def _lead(application: Application, leadership: Candidate | Standalone) -> None:
    """Stand for election once there is a whole picture to lead by, until cancelled."""
    await application.synced()
    async with leadership if isinstance(leadership, Standalone) else candidacy(leadership):
        await asyncio.Event().wait()


if __name__ == "__main__":
    sys.exit(main())
