"""Leader election by Lease: one of several operators may write.

The rules are client-go's (`tools/leaderelection`). The election of the `kubernetes` package is not
used: version 37 keeps leading when the API server is gone and never releases the Lease, and its
asyncio variant cannot create one.
"""

import asyncio
import logging
import math
import random
import secrets
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, NoReturn, TypeVar

from numapin_client.client import ApiClient
from numapin_client.errors import AlreadyExistsError, ClientError, ConflictError, NotFoundError
from numapin_client.login.credentials import Login
from numapin_client.resources import LEASES, Json, Key
from numapin_daemon.probes.health import LoopHealth
from numapin_operator.installation.leadership import Leadership
from numapin_operator.installation.observed_lease import (
    DEFAULT_TIMING,
    JITTER,
    LeaseTiming,
    ObservedLease,
)
from numapin_operator.installation.other_installations import (
    OtherInstallationError,
    OtherInstallations,
)
from numapin_operator.installation.own_thread import in_own_thread
from numapin_operator.installation.undivided import Undivided

RELEASE_SECONDS: Final = 3.0
"""How long a clean shutdown tries to release the Lease."""

HUNG_SECONDS: Final = 30.0
"""If no attempt has ended for longer, the process needs a restart. An attempt sends five requests
at most, of which each gets 5 s; the leader has stopped writing after 10 s."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


class LeaderElector:
    """Takes the Lease when that is free, and renews it.

    Attributes:
        identity: our name in the Lease; unique for each elector.
        leadership: what it reports to.
        leading: set while we hold the Lease.
    """

    def __init__(
        self,
        api: ApiClient,
        lease: Key,
        identity: str,
        timing: LeaseTiming = DEFAULT_TIMING,
        leadership: Leadership | None = None,
    ) -> None:
        """Take part in no election yet.

        Args:
            api: an open client.
            lease: the Lease; created if it does not exist.
            identity: the beginning of our name in the Lease.
            timing: the durations of the election.
            leadership: where each term is reported.
        """
        self._api, self._lease, self._timing = api, lease, timing
        self.leadership = leadership or Leadership()
        self.leading, self._clock = self.leadership.leading, self.leadership.clock
        self.identity = f"{identity}_{secrets.token_hex(8)}"
        self._observed = ObservedLease(self._clock, timing.lease_seconds)
        self._others = OtherInstallations(api, lease, timing.lease_seconds, self._clock)
        self._undivided = Undivided(self._clock, timing.lease_seconds)
        self._problem = ""
        self._attempted_at = -math.inf
        self._sent_at = self._renewed_at = 0.0

    async def run(self) -> NoReturn:
        """Wait for the Lease, lead, and wait for it again, until cancelled."""
        self.leadership.election = LoopHealth(HUNG_SECONDS, self._clock)
        while True:
            while not await self.attempt():
                await self._pause()
            _log.info("leading", extra={"lease": str(self._lease), "identity": self.identity})
            try:
                await self._renew()
            finally:
                self.leadership.end()
            _log.warning("no longer leading", extra={"lease": str(self._lease)})

    async def release(self) -> None:
        """Release the Lease, so that the next leader need not wait until it expires.

        Call it when all writing has stopped. It does nothing if we do not hold the Lease. If it
        fails, the Lease expires by itself.
        """
        if self._observed.body is None:
            return
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                lease = await self._api.get(LEASES, self._lease)
                self._observed.observe(lease)
                if not self._held_by_us():
                    return
                now = self._clock.now_text(microseconds=True)
                free = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now}
                await self._update(lease, lease["spec"] | free)
        except (ClientError, TimeoutError) as error:
            _log.warning("cannot release the lease", extra={"error": repr(error)})
        else:
            _log.info("released the lease", extra={"lease": str(self._lease)})

    async def _renew(self) -> None:
        """Renew until that fails for too long, or another operator holds the Lease.

        Our deadline counts from the moment the last successful renewal was *sent*. Others count
        from the moment they see it, which is later, and for longer. So we stop before they start.
        """
        deadline_seconds = self._timing.renew_deadline_seconds
        while True:
            left_seconds = self._renewed_at + deadline_seconds - self._clock.monotonic()
            try:
                async with asyncio.timeout(left_seconds):
                    await self._pause()
                    while not await self.attempt():
                        if not self._held_by_us():
                            return
                        await self._pause()
            except TimeoutError:
                return

    async def attempt(self) -> bool:
        """Try to take or renew the Lease; return whether we hold it now.

        Each request has its own time. We lead from the moment that the one was sent which made the
        Lease ours, so what is asked before that costs nothing of the term.
        """
        problem, self._attempted_at = "", self._clock.monotonic()
        try:
            renews = self.leadership.holds()
            held = await (self._take_or_renew() if renews else self._take_alone())
        except (ConflictError, AlreadyExistsError):
            # Another operator was faster; the next attempt reads what it wrote.
            held = False
        except (ClientError, TimeoutError) as error:
            held, problem = False, str(error) or "no answer in time"
        if held:
            self._renewed_at = self._sent_at
        if not self._undivided.must_wait(self._observed.body, is_ours=held) and held:
            self.leadership.extend(self._sent_at + self._timing.renew_deadline_seconds)
        self._report(problem)
        return held

    def _report(self, problem: str) -> None:
        """Log what the last attempt met with if that is new, and have the probes say it."""
        if problem and problem != self._problem:
            about = {"lease": str(self._lease), "error": problem}
            _log.warning("cannot take or renew the lease", extra=about)
        self._problem = problem
        if self.leadership.election is not None:
            what = {f"Lease {self._lease}": f"cannot be taken or renewed: {problem}"}
            self.leadership.election.passed(what if problem else {})

    async def _take_alone(self) -> bool:
        """Begin a term, unless the operator of another installation leads.

        It is looked for again once we hold the Lease: it may have started at the same time.

        Raises:
            OtherInstallationError: it leads, and our Lease is free.
        """
        try:
            await self._in_time(self._others.check())
            held = await self._take_or_renew()
            if held:
                await self._in_time(self._others.check())
        except OtherInstallationError:
            if self._held_by_us():
                await self.release()
            raise
        return held

    async def _take_or_renew(self) -> bool:
        """Renew with one request if the Lease is as last seen, else read it first.

        Source: client-go `tryAcquireOrRenew`, "fast path".
        """
        observed = self._observed
        if observed.body is not None and self._held_by_us():
            with suppress(ConflictError, NotFoundError):
                await self._hold(observed.body)
                return True
        try:
            lease = await self._in_time(self._api.get(LEASES, self._lease))
        except NotFoundError:
            metadata = {"name": self._lease.name, "namespace": self._lease.namespace}
            body: Json = {"metadata": metadata, "spec": self._spec({})}
            self._sent_at = self._clock.monotonic()
            observed.observe(await self._in_time(self._api.create(LEASES, body)))
            return True
        observed.observe(lease)
        if not self._held_by_us() and not observed.expired():
            return False
        await self._hold(lease)
        return True

    async def _hold(self, lease: Json) -> None:
        self._sent_at = self._clock.monotonic()
        spec = self._spec(lease.get("spec") or {})
        await self._in_time(self._update(self._undivided.unmarked(lease), spec))

    async def _in_time(self, answer: Awaitable[T]) -> T:
        """The answer to one request; one that is lost on a dead connection leaves time for another.

        Source: client-go `resourcelock.NewFromKubeconfig`: half the deadline.
        """
        async with asyncio.timeout(self._timing.renew_deadline_seconds / 2):
            return await answer

    async def _update(self, lease: Json, spec: Json) -> None:
        self._observed.observe(await self._api.update(LEASES, lease | {"spec": spec}))

    def _held_by_us(self) -> bool:
        return self._observed.holder == self.identity

    def _spec(self, old: dict[str, Any]) -> dict[str, Any]:
        """The spec by which we hold the Lease from now on, or still."""
        now = self._clock.now_text(microseconds=True)
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
        """Wait from one attempt to the next; not at all after one that took as long."""
        retry_seconds = self._timing.retry_seconds * random.uniform(1.0, JITTER)  # noqa: S311
        passed_seconds = self._clock.monotonic() - self._attempted_at
        await self._clock.sleep(max(0.0, retry_seconds - passed_seconds))


@asynccontextmanager
async def run_elector(elector: LeaderElector) -> AsyncIterator[LeaderElector]:
    """Take part in the election as long as the context lasts; release the Lease at its end."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(elector.run(), name="leader election")
        try:
            yield elector
        finally:
            task.cancel()
            await asyncio.wait([task])
            await elector.release()


async def take_part(
    leadership: Leadership,
    login: Login,
    lease: Key,
    identity: str,
    timing: LeaseTiming = DEFAULT_TIMING,
) -> None:
    """Take part in the election until cancelled, in a thread with a loop and connection of its own.

    A renewal thus never waits for the work of the caller's loop. At the end the Lease is released:
    cancel it when all writing has stopped.

    Raises:
        LoginError: the login is unusable.
    """

    async def elect(api: ApiClient, stop: Awaitable[None]) -> None:
        async with run_elector(LeaderElector(api, lease, identity, timing, leadership)):
            await stop

    await in_own_thread(login, elect)
