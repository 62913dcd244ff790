"""How many writes of a NodeReport a placed pod costs, and when they come."""

import pytest

from numapin_api.conditions.reasons import Obstacle
from numapin_enforcer.status.publisher import Publisher
from numapin_enforcer.status.publishing.hold import HOLD_SECONDS
from numapin_enforcer.status.report import Report
from support.fakes.manual_clock import ManualClock
from support.fakes.status_store import OwnStores
from support.fakes.worlds.reports import assignment, report


async def writes(
    api: OwnStores, publisher: Publisher, clock: ManualClock, *steps: tuple[float, Report]
) -> list[float]:
    """The seconds after which each write came, given reports and when they come."""
    began_seconds, seen, made = clock.monotonic(), len(api.report.patches), list[float]()
    for at_seconds, one in (*steps, (60.0, steps[-1][1])):
        while (left := began_seconds + at_seconds - clock.monotonic()) > 1e-6:
            await clock.advance(min(0.5, left))
            if (count := len(api.report.patches)) > seen:
                made += [clock.monotonic() - began_seconds] * (count - seen)
                seen = count
        publisher.publish(one)
        await clock.run_tasks()
        if (count := len(api.report.patches)) > seen:
            made += [clock.monotonic() - began_seconds] * (count - seen)
            seen = count
    return made


A, B = assignment("a", 2), assignment("b", 3)
ACCEPTED = report(2, A)
IN_FORCE = report(2, A, running=("a",))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (((0.0, IN_FORCE),), [0.0]),
        (((0.0, ACCEPTED), (1.5, IN_FORCE)), [1.5]),
        (((0.0, ACCEPTED),), [HOLD_SECONDS]),
        (((0.0, ACCEPTED), (10.0, IN_FORCE)), [HOLD_SECONDS, 10.0]),
        (
            ((0.0, ACCEPTED), (2.0, report(3, A, B)), (2.5, report(3, A, B, running=("a",)))),
            [2.5],
        ),
        (((0.0, report(2, A, stalled=Obstacle("Broken", "x"))),), [0.0]),
        (((0.0, ACCEPTED), (1.0, report(2, A, stalled=Obstacle("Broken", "x")))), [1.0]),
        (((0.0, report(2, A, waited_for=("Static", "p", 2))),), [0.0]),
        (((0.0, report(2, A, waited_for=None)),), [0.0]),
        (((0.0, ACCEPTED), (0.5, report(3, B, A)), (1.0, report(4, A))), [HOLD_SECONDS]),
        (((0.0, ACCEPTED), (1.0, report())), []),
    ],
    ids=[
        *("a container that runs", "one that starts after its assignment", "one that never starts"),
        *("one that starts late", "two pods", "a refusal", "a refusal while it waits"),
        *("new settings of the policy", "a container that moves", "more lines do not prolong it"),
        "taken back",
    ],
)
async def test_how_many_writes_a_placed_pod_costs(
    api: OwnStores,
    reporting: Publisher,
    clock: ManualClock,
    steps: tuple[tuple[float, Report], ...],
    expected: list[float],
) -> None:
    assert await writes(api, reporting, clock, *steps) == pytest.approx(expected)


async def test_after_a_restart_the_first_report_waits_for_nothing(
    api: OwnStores, publisher: Publisher, clock: ManualClock
) -> None:
    """What the operator waited for before is not known."""
    api.report.body["status"] = report().node_report({}, "2030-01-01T00:00:00Z")
    publisher.observe_report(api.report.body)
    publisher.publish(ACCEPTED)
    await clock.run_tasks()
    assert len(api.report.patches) == 1


async def test_a_restart_with_nothing_new_writes_nothing(
    api: OwnStores, publisher: Publisher, clock: ManualClock
) -> None:
    api.report.body["status"] = report().node_report({}, "2030-01-01T00:00:00Z")
    publisher.observe_report(api.report.body)
    publisher.publish(report())
    await clock.run_tasks()
    assert api.report.patches == []
    publisher.publish(ACCEPTED)
    await clock.advance(HOLD_SECONDS - 0.1)
    assert api.report.patches == []
