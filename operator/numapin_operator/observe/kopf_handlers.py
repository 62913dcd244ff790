"""kopf edge: every event of our two kinds is handed on as it is; nothing is decided here."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numapin_api import names
from numapin_operator.observe.kopf_import import kopf

Deliver = Callable[[Mapping[str, Any], bool], None]
"""Takes an object and whether it is gone; runs in the operator's own event loop."""


@dataclass(frozen=True, slots=True)
class Receivers:
    """Who is told of what; called in `loop`, whichever loop kopf itself runs in."""

    loop: asyncio.AbstractEventLoop
    policy: Deliver
    assignment: Deliver


def build_registry(
    receivers: Receivers, login: Callable[[], kopf.AiohttpSession]
) -> kopf.OperatorRegistry:
    """A fresh registry that serves CpuPolicy and NodeAssignment.

    Args:
        receivers: who takes the events in.
        login: opens a session to the API server; called in kopf's event loop.
    """
    registry = kopf.OperatorRegistry()

    def passes_on(deliver: Deliver) -> Callable[..., Any]:
        async def pass_on(event: kopf.RawEvent, **_: Any) -> None:
            gone = event["type"] == "DELETED"
            receivers.loop.call_soon_threadsafe(deliver, event["object"], gone)

        return pass_on

    async def log_in(**_: Any) -> kopf.AiohttpSession:
        return login()

    kopf.on.login(registry=registry, id="log-in")(log_in)
    for plural, deliver in (
        (names.CPU_POLICY_PLURAL, receivers.policy),
        (names.NODE_ASSIGNMENT_PLURAL, receivers.assignment),
    ):
        events = kopf.on.event(names.GROUP, names.VERSION, plural, registry=registry, id=plural)
        events(passes_on(deliver))
    return registry
