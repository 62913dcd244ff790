"""Silent enforcers are reported once, and never because the API server was away."""

from numapin_client.errors import ClientError, ConflictError, ConnectionFailedError
from numapin_client.resources import Key
from numapin_operator.heartbeats.marker import mark_unknown
from numapin_operator.heartbeats.silence import Beat
from numapin_operator.heartbeats.watcher import LOOK_SECONDS, Watcher
from support.fakes.manual_clock import ManualClock
from support.real.waiting import running

NODES = ("a", "b", "c")


class Leases:
    """Leases that all renew at each look, but those that stopped."""

    def __init__(self) -> None:
        self.items: dict[Key, Beat] = {}
        self.problem: Exception | None = None
        self.stopped: set[str] = set()

    def renew(self, now: float) -> None:
        for name in NODES:
            if name not in self.stopped:
                self.items[Key(name, "numapin-system")] = Beat(f"{now}", "then", 50.0)


class Marks:
    """What is reported; refuses with what stands first in `refusals`."""

    def __init__(self) -> None:
        self.marked: list[str] = []
        self.refusals: list[ClientError] = []

    async def mark(self, node: str, beat: Beat) -> None:
        if self.refusals:
            raise self.refusals.pop(0)
        self.marked.append(node)


class World:
    """A watcher, and time that passes with renewals."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock, self.leases, self.marks = clock, Leases(), Marks()
        self.watcher = Watcher(self.leases, self.marks, clock)

    async def pass_time(self, seconds: float) -> list[str]:
        for _ in range(int(seconds // LOOK_SECONDS)):
            self.leases.renew(self.clock.monotonic())
            await self.clock.advance(LOOK_SECONDS)
        return self.marks.marked


async def test_a_dead_enforcer_is_reported_once(clock: ManualClock) -> None:
    world = World(clock)
    async with running(world.watcher.run()):
        assert await world.pass_time(300) == []
        world.leases.stopped = {"b"}
        assert await world.pass_time(60) == ["b"]
        assert await world.pass_time(600) == ["b"]


async def test_a_conflict_is_tried_again_at_once(clock: ManualClock) -> None:
    world = World(clock)
    async with running(world.watcher.run()):
        await world.pass_time(300)
        world.leases.stopped = {"b"}
        world.marks.refusals = [ConflictError("PATCH b", 409, {"reason": "Conflict"})]
        assert await world.pass_time(65) == ["b"]


async def test_an_api_server_that_does_not_answer_gives_every_node_its_time(
    clock: ManualClock,
) -> None:
    world = World(clock)
    async with running(world.watcher.run()):
        await world.pass_time(300)
        world.leases.stopped = {"b"}
        world.marks.refusals = [ConnectionFailedError("GET b", "refused")]
        assert await world.pass_time(95) == []
        assert await world.pass_time(20) == ["b"]


async def test_while_the_leases_cannot_be_watched_nobody_is_silent(clock: ManualClock) -> None:
    world = World(clock)
    async with running(world.watcher.run()):
        await world.pass_time(300)
        world.leases.stopped, world.leases.problem = {"a"}, ConnectionFailedError("GET", "refused")
        assert await world.pass_time(600) == []
        world.leases.problem = None
        assert await world.pass_time(45) == []
        assert await world.pass_time(15) == ["a"]


def test_ready_alone_becomes_unknown() -> None:
    beat = Beat("7", "2030-01-01T00:00:00.000000Z", 50.0)
    reported = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "observedGeneration": 3,
            "lastTransitionTime": "2029-01-01T00:00:00Z",
            "reason": "Enforced",
            "message": "fine",
        }
        for kind in ("Ready", "Reconciling", "Stalled")
    ]
    changed = mark_unknown(reported, beat, "2030-01-01T00:01:00Z")
    assert changed is not None
    assert changed[1:] == reported[1:]
    assert changed[0] == reported[0] | {
        "status": "Unknown",
        "lastTransitionTime": "2030-01-01T00:01:00Z",
        "reason": "EnforcerUnknown",
        "message": "the enforcer has not renewed its Lease since 2030-01-01T00:00:00.000000Z, "
        "for 50 s or more: what it reported last may not be so any more",
    }
    assert mark_unknown(changed, beat, "2030-01-01T00:02:00Z") is None
    assert mark_unknown([], beat, "2030-01-01T00:02:00Z") is None
