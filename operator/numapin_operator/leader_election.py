"""Leader election by Lease: of several operators one may write.

The rules are client-go's (`tools/leaderelection`). The `kubernetes` package's own election did not
prove itself: version 37 goes on leading when the API server is gone, never releases, and its
asyncio one cannot create a Lease.
"""

import asyncio
import logging
import math
import random
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NoReturn

from numapin_client.client import ApiClient
from numapin_client.errors import AlreadyExistsError, ClientError, ConflictError, NotFoundError
from numapin_client.resources import LEASES, Json, Key

RELEASE_SECONDS: Final = 3.0
"""How long a clean shutdown tries to hand the lease on."""

_JITTER: Final = 1.2
"""Candidates must not ask in step. Source: client-go `leaderelection.JitterFactor`."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """How long things take, in seconds; the defaults are those of Kubernetes' own components.

    Attributes:
        lease_seconds: a lease not renewed for so long may be taken.
        renew_deadline_seconds: a leader that could not renew for so long stops leading.
        retry_seconds: between two attempts to take or renew.

    Raises:
        ValueError: a leader would not have stopped before another may start.
    """

    lease_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_seconds: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_seconds > self.renew_deadline_seconds > self.retry_seconds * _JITTER:
            raise ValueError(
                f"{self}: lease must exceed renew deadline, and that {_JITTER} times retry"
            )


DEFAULT_TIMING: Final = LeaseTiming()


class Candidate:
    """One operator that leads, or stands by to lead.

    Attributes:
        identity: what the lease calls us; no two candidates share one.
        leading: set while we hold the lease.
    """

    def __init__(
        self,
        api: ApiClient,
        lease: Key,
        identity: str,
        timing: LeaseTiming = DEFAULT_TIMING,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._lease, self._timing, self._clock = api, lease, timing, clock
        self.identity = f"{identity}_{secrets.token_hex(8)}"
        self.leading = asyncio.Event()
        self._seen: Json | None = None
        self._seen_at = 0.0
        self._renewed_at = 0.0

    async def run(self) -> NoReturn:
        """Stand by, lead, and stand by again, until cancelled."""
        while True:
            while not await self.attempt():
                await self._pause()
            self.leading.set()
            _log.info("leading", extra={"lease": str(self._lease), "identity": self.identity})
            try:
                await self._keep()
            finally:
                self.leading.clear()
            _log.warning("no longer leading", extra={"lease": str(self._lease)})

    async def release(self) -> None:
        """Hand the lease on, so that the next leader need not wait for its end.

        To be called when nothing is written any more. Does nothing when we do not hold it;
        when it fails, the lease ends by itself.
        """
        if self._seen is None:
            return
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                lease = await self._api.get(LEASES, self._lease)
                if not self._held_by_us(lease):
                    return
                free = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now()}
                await self._api.update(LEASES, lease | {"spec": lease["spec"] | free})
        except (ClientError, TimeoutError) as error:
            _log.warning("the lease could not be handed on", extra={"error": repr(error)})
        else:
            _log.info("handed the lease on", extra={"lease": str(self._lease)})

    async def _keep(self) -> None:
        """Renew until that fails for too long, or somebody else holds the lease.

        The time counts from the moment the last good renewal was *sent*. Others count from when
        they see it, which is later, and for longer: we have stopped before they may start.
        """
        deadline_seconds = self._timing.renew_deadline_seconds
        while True:
            left_seconds = self._renewed_at + deadline_seconds - self._clock()
            try:
                async with asyncio.timeout(left_seconds):
                    await self._pause()
                    while not await self.attempt():
                        if self._seen is not None and not self._held_by_us(self._seen):
                            return
                        await self._pause()
            except TimeoutError:
                return

    async def attempt(self) -> bool:
        """Try to take or renew the lease; say whether we hold it now."""
        sent_at = self._clock()
        try:
            # Half of what there is: a request lost on a dead connection leaves time for another.
            async with asyncio.timeout(self._timing.renew_deadline_seconds / 2):
                held = await self._take_or_renew()
        except (ConflictError, AlreadyExistsError):
            # Somebody was faster; the next attempt reads what they wrote.
            return False
        except (ClientError, TimeoutError) as error:
            _log.warning(
                "the lease could not be taken or renewed",
                extra={"lease": str(self._lease), "error": repr(error)},
            )
            return False
        if held:
            self._renewed_at = sent_at
        return held

    async def _take_or_renew(self) -> bool:
        try:
            lease = await self._api.get(LEASES, self._lease)
        except NotFoundError:
            metadata = {"name": self._lease.name, "namespace": self._lease.namespace}
            body: Json = {"metadata": metadata, "spec": self._spec({})}
            self._observe(await self._api.create(LEASES, body))
            return True
        self._observe(lease)
        if not self._held_by_us(lease) and not self._expired(lease):
            return False
        spec = self._spec(lease.get("spec") or {})
        self._observe(await self._api.update(LEASES, lease | {"spec": spec}))
        return True

    def _observe(self, lease: Json) -> None:
        """Remember the lease, and by our own clock since when it has been as it is.

        The times written in it are another machine's, and not to be compared with ours.
        """
        if self._seen is None or _version(self._seen) != _version(lease):
            self._seen_at = self._clock()
        self._seen = lease

    def _held_by_us(self, lease: Json) -> bool:
        return (lease.get("spec") or {}).get("holderIdentity") == self.identity

    def _expired(self, lease: Json) -> bool:
        spec = lease.get("spec") or {}
        lasts_seconds = float(spec.get("leaseDurationSeconds") or self._timing.lease_seconds)
        return not spec.get("holderIdentity") or self._clock() >= self._seen_at + lasts_seconds

    def _spec(self, old: dict[str, Any]) -> dict[str, Any]:
        """Write that we hold the lease from now on, or still."""
        now = _now()
        spec = old | {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(self._timing.lease_seconds),
            "renewTime": now,
        }
        if old.get("holderIdentity") != self.identity:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = int(old.get("leaseTransitions") or 0) + bool(old)
        return spec

    async def _pause(self) -> None:
        await asyncio.sleep(self._timing.retry_seconds * random.uniform(1.0, _JITTER))  # noqa: S311


@asynccontextmanager
async def candidacy(candidate: Candidate) -> AsyncIterator[Candidate]:
    """Stand for election as long as the context lasts; hands the lease on at its end."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(candidate.run(), name="leader election")
        try:
            yield candidate
        finally:
            task.cancel()
            await asyncio.wait([task])
            await candidate.release()


def _version(lease: Json) -> str:
    return str(lease["metadata"]["resourceVersion"])


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
