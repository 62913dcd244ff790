"""Holds the Leases of shards: the requests that `Candidate` asks for, round by round."""

import asyncio
import logging
import math
import random
import secrets
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Final, NoReturn, TypeVar

from numapin_api import names
from numapin_client.client import ApiClient
from numapin_client.errors import AlreadyExistsError, ClientError, ConflictError, NotFoundError
from numapin_client.login.credentials import Login
from numapin_client.resources import LEASES, Json, Key
from numapin_daemon.probes.health import LoopHealth
from numapin_operator.installation.leader_election import HUNG_SECONDS, RELEASE_SECONDS
from numapin_operator.installation.leadership import Leadership
from numapin_operator.installation.observed_lease import DEFAULT_TIMING, JITTER, LeaseTiming
from numapin_operator.installation.other_installations import OtherInstallations
from numapin_operator.installation.own_thread import in_own_thread
from numapin_operator.shards.candidate import Candidate
from numapin_operator.shards.division import Identity, lease_name

SOON_SECONDS: Final = 0.5
"""Until the next round after one that took a shard, or that waits for work to end."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


def _idle() -> Event:
    event = Event()
    event.set()
    return event


@dataclass(frozen=True, slots=True)
class Holding:
    """What one shard's Lease means for the work on the shard.

    Attributes:
        leadership: whether this operator may write what concerns the shard.
        idle: set while nothing works on the shard, so that its Lease may be freed.
    """

    leadership: Leadership = field(default_factory=Leadership)
    idle: Event = field(default_factory=_idle)


class ShardElector:
    """Takes shards, renews them, and hands them over."""

    def __init__(
        self,
        api: ApiClient,
        namespace: str,
        identity: str,
        holdings: Sequence[Holding],
        timing: LeaseTiming = DEFAULT_TIMING,
    ) -> None:
        """Take part in no election yet.

        Args:
            api: an open client.
            namespace: where the Leases are.
            identity: the beginning of our name in the Leases.
            holdings: one for each shard.
            timing: the durations of the elections.
        """
        self._api, self._namespace, self._timing = api, namespace, timing
        self._holdings = tuple(holdings)
        me = Identity(f"{identity}_{secrets.token_hex(8)}", len(holdings))
        self.candidate = Candidate(me, namespace, timing)
        self._clock = holdings[0].leadership.clock
        first = Key(lease_name(0), namespace)
        self._others = OtherInstallations(api, first, timing.lease_seconds, self._clock)
        self._health = LoopHealth(HUNG_SECONDS, self._clock)
        self._problem = ""

    async def run(self) -> NoReturn:
        """Hold one round after the other, until cancelled."""
        for one in self._holdings:
            one.leadership.election = self._health
        while True:
            began_at = self._clock.monotonic()
            wait_seconds = await self.round()
            passed_seconds = self._clock.monotonic() - began_at
            await self._clock.sleep(max(0.0, wait_seconds - passed_seconds))

    async def round(self) -> float:
        """Read all Leases and do what follows; return in how many seconds to do it again."""
        problem, is_soon = "", False
        try:
            await self._read()
            is_soon = await self._move()
        except (ClientError, TimeoutError) as error:
            problem = str(error) or "no answer in time"
        self._tell()
        self._report(problem)
        jitter = random.uniform(1.0, JITTER)  # noqa: S311 - spreads attempts, no secret
        return jitter * (SOON_SECONDS if is_soon else self._timing.retry_seconds)

    async def release(self) -> None:
        """Free all Leases that are held; call it when all writing has stopped."""
        mine = [shard for shard, one in enumerate(self._holdings) if self.candidate.holds(shard)]
        for shard in mine:
            self.candidate.stop(shard)
        self._tell()
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                for shard in mine:
                    await self._free(shard)
        except (ClientError, TimeoutError) as error:
            _log.warning("cannot release the lease of a shard", extra={"error": repr(error)})

    async def _read(self) -> None:
        """Read all Leases, that of shard 0 first: without it nothing is led for long."""
        await self._read_one(0)
        answers = (self._read_one(shard) for shard in range(1, len(self._holdings)))
        for failed in await asyncio.gather(*answers, return_exceptions=True):
            if isinstance(failed, ClientError | TimeoutError):
                continue  # it stays as it was last read: a write of that would be refused
            if failed is not None:
                raise failed

    async def _read_one(self, shard: int) -> None:
        sent, body = self._clock.monotonic(), None
        try:
            body = await self._in_time(self._api.get(LEASES, self._key(shard)))
        except NotFoundError:
            body = None
        self.candidate.read(shard, body, sent, self._clock.monotonic())

    async def _move(self) -> bool:
        """Make the writes of a round; return whether the next one should follow soon."""
        candidate = self.candidate
        moves = candidate.moves(self._clock.monotonic())
        for shard in moves.stop:
            candidate.stop(shard)
        if moves.hand_over is not None:
            candidate.hand_over(moves.hand_over)
        self._tell()
        await self._all(self._hold(shard) for shard in moves.renew)
        self._tell()
        if moves.take is not None:
            await self._take(moves.take)
        if moves.ask is not None:
            await self._write(candidate.asked(moves.ask))
        ending = [*moves.stop, *(() if moves.hand_over is None else (moves.hand_over,))]
        for shard in ending:
            if self._holdings[shard].idle.is_set():
                await self._free(shard)
        return bool(ending) or moves.take is not None

    async def _take(self, shard: int) -> None:
        """Take a shard; shard 0 only if no other installation leads, before and after."""
        if shard == 0:
            await self._in_time(self._others.check())
        await self._hold(shard)
        if shard == 0 and self.candidate.holds(0):
            try:
                await self._in_time(self._others.check())
            except BaseException:
                self.candidate.stop(0)
                await self._free(0)
                raise

    async def _hold(self, shard: int) -> None:
        sent = self._clock.monotonic()
        body = self.candidate.held(shard, sent, self._clock.now_text(microseconds=True))
        answer = await self._write(body)
        if answer is not None:
            self.candidate.wrote(shard, answer, sent, self._clock.monotonic())

    async def _free(self, shard: int) -> None:
        body = self.candidate.freed(shard, self._clock.now_text(microseconds=True))
        answer = await self._write(body)
        if answer is not None:
            now = self._clock.monotonic()
            self.candidate.read(shard, answer, now, now)
            _log.info("freed the lease of a shard", extra={"shard": shard})

    async def _write(self, body: Json) -> Json | None:
        """Create or replace a Lease; None if another operator was faster."""
        is_new = "resourceVersion" not in body["metadata"]
        try:
            if is_new:
                return await self._in_time(self._api.create(LEASES, body))
            return await self._in_time(self._api.update(LEASES, body))
        except (ConflictError, AlreadyExistsError, NotFoundError):
            return None

    async def _all(self, writes: Iterable[Awaitable[None]]) -> None:
        """Make all writes; the first failure is raised when all have ended."""
        failed = [one for one in await asyncio.gather(*writes, return_exceptions=True) if one]
        for one in failed:
            raise one

    async def _in_time(self, answer: Awaitable[T]) -> T:
        async with asyncio.timeout(self._timing.renew_deadline_seconds / 2):
            return await answer

    def _tell(self) -> None:
        """Begin, extend and end leads, as the Leases say."""
        for shard, one in enumerate(self._holdings):
            until, leads = self.candidate.leads_until(shard), one.leadership.is_begun
            if until > self._clock.monotonic():
                one.leadership.extend(until)
            elif until == -math.inf or leads:
                one.leadership.end()
            if one.leadership.is_begun != leads:
                text = "no longer leading" if leads else "leading"
                _log.info(text, extra={"shard": shard, "identity": str(self.candidate.me)})

    def _report(self, problem: str) -> None:
        if problem and problem != self._problem:
            _log.warning("cannot follow the leases of shards", extra={"error": problem})
        self._problem = problem
        what = {f"Leases {names.LEADER_LEASE}": f"cannot be followed: {problem}"}
        self._health.passed(what if problem else {})

    def _key(self, shard: int) -> Key:
        return Key(lease_name(shard), self._namespace)


async def take_shards(
    login: Login,
    namespace: str,
    identity: str,
    holdings: Sequence[Holding],
    timing: LeaseTiming = DEFAULT_TIMING,
) -> None:
    """Take part in the elections until cancelled, in a thread with a loop of its own.

    At the end the Leases are released: cancel it when all writing has stopped.

    Raises:
        LoginError: the login is unusable.
    """

    async def elect(api: ApiClient, stop: Awaitable[None]) -> None:
        elector = ShardElector(api, namespace, identity, holdings, timing)
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(elector.run(), name="shard elections")
            try:
                await stop
            finally:
                task.cancel()
                await asyncio.wait([task])
                await elector.release()

    await in_own_thread(login, elect)
