"""Which enforcers count as silent, by what was heard of their Leases, and when."""

from collections.abc import Iterable

import pytest

from numapin_operator.heartbeats.silence import GAP_SECONDS, SHORTEST_SECONDS, Beat, Listening

TICK_SECONDS, RENEW_SECONDS, LASTS_SECONDS = 5, 20, 50
NODES = ("a", "b", "c", "d")


class Fleet:
    """Nodes that renew each 20 s, one after the other, and are looked at each 5 s."""

    def __init__(self, nodes: Iterable[str] = NODES) -> None:
        self.beats: dict[str, Beat] = {}
        self.phases = {name: index * TICK_SECONDS for index, name in enumerate(nodes)}
        self.now = 1000.0
        self.listening = Listening(self.now)
        self.stopped: set[str] = set()
        self.marked: list[tuple[float, str]] = []

    def run(self, seconds: float) -> "Fleet":
        """Let time pass; who is silent is marked."""
        for _ in range(int(seconds // TICK_SECONDS)):
            self.now += TICK_SECONDS
            for name, phase in self.phases.items():
                if name not in self.stopped and (self.now - phase) % RENEW_SECONDS == 0:
                    self.beats[name] = Beat(f"v{self.now}", "", LASTS_SECONDS)
            self.look()
        return self

    def look(self) -> None:
        self.listening = self.listening.look(dict(self.beats), self.now)
        for name in self.listening.silent():
            self.marked.append((self.now, name))
            self.listening = self.listening.done(name)

    def stop(self, *names: str) -> "Fleet":
        self.stopped |= set(names)
        return self

    def go_on(self, *names: str) -> "Fleet":
        self.stopped -= set(names)
        return self

    @property
    def names(self) -> list[str]:
        return [name for _, name in self.marked]


def test_who_renews_is_never_silent() -> None:
    assert Fleet().run(3600).names == []


def test_one_that_stops_is_silent_within_a_minute_and_reported_once() -> None:
    fleet = Fleet().run(300).stop("b")
    began = fleet.now
    assert fleet.run(3600).names == ["b"]
    assert fleet.marked[0][0] - began <= 60


def test_one_that_comes_back_and_stops_again_is_reported_again() -> None:
    fleet = Fleet().run(300).stop("b").run(300).go_on("b").run(100).stop("b").run(300)
    assert fleet.names == ["b", "b"]


def test_all_but_one_stop() -> None:
    assert sorted(Fleet().run(300).stop("a", "b", "c").run(300).names) == ["a", "b", "c"]


@pytest.mark.parametrize("seconds", [15, 40, 60, 600, 86_400])
def test_nobody_is_silent_while_or_after_all_stop_at_once(seconds: float) -> None:
    """As in an outage of the API server; each enforcer takes its time to come back."""
    fleet = Fleet().run(300).stop(*NODES).run(seconds)
    assert fleet.names == []
    for name in NODES:
        fleet.go_on(name).run(5)
    assert fleet.run(300).names == []


def test_after_an_outage_one_that_does_not_come_back_is_silent() -> None:
    fleet = Fleet().run(300).stop(*NODES).run(600).go_on("a", "c", "d").run(200)
    assert fleet.names == ["b"]


def test_a_single_node_has_no_others() -> None:
    fleet = Fleet(["a"]).run(100).stop("a")
    began = fleet.now
    assert fleet.run(300).names == ["a"]
    assert fleet.marked[0][0] - began <= 60


def test_what_is_found_at_the_beginning_gets_its_time() -> None:
    """A new leader, or one that restarted, knows nothing of how long ago it was renewed."""
    before = Fleet().run(300).stop("b").run(40)
    after = Fleet()
    after.beats, after.now, after.stopped = before.beats, before.now, before.stopped
    after.listening = Listening(after.now)
    assert after.run(45).names == []
    assert after.run(30).names == ["b"]


def test_while_this_program_stood_still_nobody_was_silent() -> None:
    fleet = Fleet(["a"]).run(100)
    fleet.now += 600
    fleet.look()
    assert fleet.run(300).names == []


def test_nodes_without_a_lease_are_never_silent() -> None:
    """Older enforcers, and Leases that were deleted."""
    fleet = Fleet().run(300).stop("b")
    del fleet.beats["b"]
    assert fleet.run(300).names == []


def test_a_lease_is_read_as_it_is() -> None:
    spec = {"renewTime": "2030-01-01T00:00:00.000000Z", "leaseDurationSeconds": 50}
    metadata = {"resourceVersion": "7"}
    read = Beat.decode({"metadata": metadata, "spec": spec})
    assert read == Beat("7", "2030-01-01T00:00:00.000000Z", 50.0)
    assert Beat.decode({"metadata": metadata}).lasts_seconds == SHORTEST_SECONDS
    assert GAP_SECONDS > RENEW_SECONDS + TICK_SECONDS
