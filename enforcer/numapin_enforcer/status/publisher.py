"""Edge: brings the newest status to the API server, on change only and with patience."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from numapin_api.names import ENFORCER_FIELD_MANAGER
from numapin_client.errors import ClientError, NotFoundError
from numapin_client.resources import NODE_ASSIGNMENTS, Json, Key, Resource
from numapin_daemon.backoff import Backoff
from numapin_enforcer.status.conditions import Report, merge_patch

LOG: Final = logging.getLogger(__name__)


class StatusApi(Protocol):
    """What the reporter needs of the API server."""

    async def merge_patch(
        self,
        resource: Resource,
        key: Key,
        patch: Json,
        *,
        subresource: str = "",
        field_manager: str = "",
    ) -> Json:
        """Change some fields of an object."""
        ...


def now_text() -> str:
    """The time as conditions carry it. Source: RFC 3339, UTC, whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Reporter:
    """Holds the newest status and what the API server has; `run` makes the second the first.

    Whoever tells a status never waits: one that is not written yet is replaced by the next.
    """

    def __init__(self, api: StatusApi, node_name: str, now: Callable[[], str] = now_text) -> None:
        self._api, self._key, self._now = api, Key(node_name), now
        self._report: Report | None = None
        self._known: Json | None = None
        self._changed = asyncio.Event()
        self._futile: dict[str, Any] = {}
        self.problem = ""
        """Why the API server does not have the newest status yet; empty when it has."""

    def tell(self, report: Report) -> None:
        """Have this status written, instead of any told before."""
        if report != self._report:
            self._report = report
            self._changed.set()

    def observe(self, body: Json | None) -> None:
        """What the API server has now, as the watch saw it; None when the object is gone.

        An object that is new to us may hold what the next report must build on, such as a count;
        so what was told before it came is not written.
        """
        if self._known is None:
            self._report = None
        if body is None or self._known is None or _version(body) >= _version(self._known):
            self._known = body
            self._changed.set()

    async def run(self) -> None:
        """Write what is told, until cancelled."""
        backoff = Backoff(base_seconds=0.2)
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._write()
            except ClientError as error:
                self.problem = str(error)
                LOG.warning("the status was not taken, trying again", extra={"error": error})
                await asyncio.sleep(backoff.next_seconds(error.retry_after_seconds))
                self._changed.set()
            else:
                backoff.reset()
                self.problem = ""

    async def _write(self) -> None:
        """One try, when there is an object and it says something else.

        Raises:
            ClientError: the API server did not take it.
        """
        report = self._report  # a newer one may be told while this one is under way
        if report is None or self._known is None:
            return
        patch = self._patch(report, self._known)
        if not patch or patch == self._futile:
            return
        uid = self._known["metadata"]["uid"]
        body = {"metadata": {"uid": uid}, "status": patch}
        with suppress(NotFoundError):  # the watch tells when there is one again
            answer = await self._api.merge_patch(
                NODE_ASSIGNMENTS,
                self._key,
                body,
                subresource="status",
                field_manager=ENFORCER_FIELD_MANAGER,
            )
            self._learn(answer, self._patch(report, answer))

    def _learn(self, answer: Json, left: dict[str, Any]) -> None:
        """Take in what the API server made of a patch.

        What it leaves out (its CRD is older than we are, and prunes what it does not know) would
        be sent for ever.
        """
        if left and left != self._futile:
            LOG.warning(
                "the API server keeps only a part of the status; is its CRD older than this?",
                extra={"fields": sorted(left)},
            )
        self._futile = left
        if self._known is not None and _version(answer) >= _version(self._known):
            self._known = answer

    def _patch(self, report: Report, known: Json) -> dict[str, Any]:
        raw = known.get("status") or {}
        return merge_patch(raw, report.wire(raw, self._now()))


def _version(body: Json) -> int:
    """An object's resourceVersion as a number, by which newer is greater.

    Source: KEP-5504, "Comparable Resource Version".
    """
    text = str(body["metadata"].get("resourceVersion", ""))
    return int(text) if text.isascii() and text.isdigit() else 0
