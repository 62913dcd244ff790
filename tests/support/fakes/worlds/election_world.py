"""Operators that share the nodes, on one API server, in simulated time; requests interleave."""

import random
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush

from numapin_client.resources import Json
from numapin_operator.installation.observed_lease import LeaseTiming
from numapin_operator.shards.candidate import Candidate, Moves
from numapin_operator.shards.division import Identity

TIMING = LeaseTiming()

Steps = Generator[float, None, None]
"""Yields for how many seconds of real time it does nothing."""


class RefusedError(Exception):
    """A request that had no effect, or whose answer was lost."""


@dataclass
class Server:
    """Leases with resourceVersions: a write of an older one is refused."""

    leases: dict[int, Json] = field(default_factory=dict)
    version: int = 0

    def write(self, shard: int, body: Json) -> Json:
        known = self.leases.get(shard, {"metadata": {}})["metadata"].get("resourceVersion")
        if body["metadata"].get("resourceVersion") != known:
            raise RefusedError
        self.version += 1
        metadata = {**body["metadata"], "resourceVersion": str(self.version)}
        self.leases[shard] = {"metadata": metadata, "spec": dict(body["spec"])}
        return self.leases[shard]


class Replica:
    """One operator. Its monotonic clock has a rate of its own and starts anywhere."""

    def __init__(self, world: "World", name: str, shards: int) -> None:
        self.world, self.random = world, world.random
        self.rate, self.offset = self.random.uniform(0.9, 1.1), self.random.uniform(0, 1e6)
        self.candidate = Candidate(Identity(name, shards), "numapin-system", TIMING)
        self.is_dead = self.is_cut_off = False
        self.paused_until = 0.0

    def clock(self) -> float:
        return self.offset + self.rate * self.world.now

    def leads(self) -> set[int]:
        """The shards of which it would write something now."""
        if self.is_dead or self.paused_until > self.world.now:
            return set()
        shards = range(self.candidate.me.shards)
        return {one for one in shards if self.candidate.leads_until(one) > self.clock()}

    def request(self, ask: Callable[[], Json | None]) -> Generator[float, None, Json | None]:
        """Ask after a while, and answer after another; either may be lost."""
        yield self.random.expovariate(20)
        if self.is_cut_off or self.random.random() < self.world.loss:
            yield 5.0
            raise RefusedError
        answer = ask()
        yield self.random.expovariate(20)
        if self.is_cut_off or self.random.random() < self.world.loss:
            yield 5.0
            raise RefusedError
        return answer

    def run(self) -> Steps:
        while True:
            with suppress(RefusedError):
                yield from self.round()
            yield self.random.uniform(2.0, 2.4)

    def round(self) -> Steps:
        candidate, server = self.candidate, self.world.server
        for shard in range(candidate.me.shards):
            sent = self.clock()
            body = yield from self.request(partial(server.leases.get, shard))
            candidate.read(shard, body, sent, self.clock())
        moves = candidate.moves(self.clock())
        for shard in moves.stop:
            candidate.stop(shard)
        hold = [*moves.renew, *(() if moves.take is None else (moves.take,))]
        for shard in hold:
            yield from self.hold(shard)
        yield from self.trade(moves)

    def hold(self, shard: int) -> Steps:
        sent, body = self.clock(), self.candidate.held(shard, self.clock(), self.now_text())
        try:
            answer = yield from self.request(lambda: self.world.server.write(shard, body))
        except RefusedError:
            return
        assert answer is not None
        self.candidate.wrote(shard, answer, sent, self.clock())

    def trade(self, moves: Moves) -> Steps:
        candidate, server = self.candidate, self.world.server
        if (asked := moves.ask) is not None:
            body = candidate.asked(asked)
            yield from self.request(lambda: server.write(asked, body))
        if (given := moves.hand_over) is not None:
            candidate.hand_over(given)
            yield self.random.uniform(0, 3)
            body = candidate.freed(given, self.now_text())
            yield from self.request(lambda: server.write(given, body))

    def now_text(self) -> str:
        """A date that jumps: it must not matter."""
        return f"{self.random.choice((1999, 2026, 2040))}-{self.world.now}"


class World:
    """Runs replicas, and looks after each of their steps that no node has two leaders."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now, self.loss = 0.0, 0.0
        self.server, self.replicas = Server(), list[Replica]()
        self._queue: list[tuple[float, int, Replica, Steps]] = []
        self._count = 0

    def join(self, shards: int) -> Replica:
        self._count += 1
        replica = Replica(self, f"operator-{self._count}", shards)
        self.replicas.append(replica)
        heappush(self._queue, (self.now, self._count, replica, replica.run()))
        return replica

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self._queue and self._queue[0][0] <= end:
            at, number, replica, steps = heappop(self._queue)
            self.now = max(self.now, at)
            if replica.is_dead:
                continue
            if replica.paused_until > self.now:
                heappush(self._queue, (replica.paused_until, number, replica, steps))
                continue
            pause = next(steps)
            self.look()
            heappush(self._queue, (self.now + pause, number, replica, steps))
        self.now = end

    def look(self) -> None:
        """No two replicas may write the same node: not by one division, nor by two."""
        leads = [(one.candidate.me, shard) for one in self.replicas for shard in one.leads()]
        divisions = {me.shards for me, _ in leads}
        assert len(divisions) <= 1, f"at {self.now}: {leads}"
        assert len({shard for _, shard in leads}) == len(leads), f"at {self.now}: {leads}"

    def holders(self) -> dict[int, str]:
        """Who leads each shard that has a leader."""
        return {shard: one.candidate.me.name for one in self.replicas for shard in one.leads()}
