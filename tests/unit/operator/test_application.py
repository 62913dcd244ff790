"""What the operator's probes say, and how its parts are wired together."""

import math

from numapin_client.client import ApiClient
from numapin_client.login.credentials import Login
from numapin_client.transport.connection import Connection
from numapin_daemon.probes.health import LoopHealth
from numapin_operator.application import STALLED_SECONDS, Application
from numapin_operator.installation.leadership import Leadership
from numapin_operator.policies.status import NodeOutcome, Phase
from numapin_operator.telemetry.table import EVICTIONS_WAITING, NODES, OUTDATED, REFUSED_PODS
from numapin_operator.term import Term
from support.fakes.cluster import FakeCluster
from support.fakes.manual_clock import ManualClock
from support.real.waiting import running

KINDS = {
    "pods",
    "nodes",
    "namespaces",
    "nodeassignments",
    "nodereports",
    "nodetopologies",
}


def make(clock: ManualClock, leadership: Leadership | None = None) -> Application:
    login = Login("http://nowhere.invalid", "a test")
    api = ApiClient(Connection(login))
    return Application(api, FakeCluster(), leadership or Leadership(clock), login, clock)


async def test_it_is_not_ready_before_everything_was_listed() -> None:
    missing = make(ManualClock()).health().missing()
    assert missing.keys() == KINDS | {"lists of policies"}
    assert missing["pods"] == "not listed yet: no watch yet"


async def test_a_watch_without_contact_is_named_after_a_while() -> None:
    """Before, only what had never been listed counted."""
    clock = ManualClock()
    application = make(clock)
    for informer in application._informers.values():
        informer.synced.set()
        informer.behind_since = None
    application._informers["pods"].behind_since = clock.monotonic()
    await clock.advance(9)
    assert not application.health().missing().keys() & KINDS
    await clock.advance(3)
    assert application.health().missing()["pods"] == "out of date for 12 s: no watch yet"


async def test_a_loop_that_stands_still_needs_a_restart() -> None:
    clock = ManualClock()
    application = make(clock)
    parts = application.parts()
    lag = parts.pop("loop lag")
    for part in parts.values():
        part.close()
    async with running(lag):
        await clock.run_tasks()
        assert application.health().fatal() == ""
        clock.stand_still(STALLED_SECONDS + 2)
        assert application.health().fatal() == "the event loop has stood still for 31 s"


async def test_an_election_that_hangs_needs_a_restart() -> None:
    clock = ManualClock()
    leadership = Leadership(clock)
    application = make(clock, leadership)
    leadership.election = LoopHealth(30, clock)
    leadership.election.passed({"Lease a/b": "cannot be taken or renewed: 403"})
    assert application.health().missing()["Lease a/b"].endswith("403")
    assert application.health().fatal() == ""
    clock.stand_still(31)
    assert application.health().fatal() == "leader election: the last pass ended 31 s ago"


async def test_what_only_the_leader_knows_is_absent_once_the_lead_is_lost() -> None:
    """Two replicas would report the same nodes and pods."""
    leadership = Leadership(ManualClock())
    application = make(ManualClock(), leadership)
    outcome = NodeOutcome("n", "p", 1, Phase.IN_FORCE, refused=2, outdated=1)
    application._term = Term(application._lasting)
    application._term.outputs.statuses.set_outcome("n", outcome)
    of_leader = {NODES, REFUSED_PODS, OUTDATED, EVICTIONS_WAITING}

    def present() -> dict[str, float]:
        families = application.meter.collect()
        return {one.metric.name: sum(dict(one.values).values()) for one in families if one.values}

    assert not {one.name for one in of_leader} & present().keys()
    leadership.extend(math.inf)
    found = present()
    assert [found[one.name] for one in (NODES, REFUSED_PODS, OUTDATED)] == [1, 2, 1]
    leadership.end()
    found = present()
    assert not {one.name for one in of_leader} & found.keys()
    assert found["numapin_leads"] == 0
