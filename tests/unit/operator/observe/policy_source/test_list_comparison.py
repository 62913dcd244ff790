import asyncio

import pytest

from numapin_client.errors import ConnectionFailedError, NotFoundError
from numapin_operator.observe.policy_source.list_comparison import ListComparison
from support.fakes.manual_clock import ManualClock
from support.real.waiting import running


class Lists:
    """Counts comparisons; each fails with the next of `failures`."""

    def __init__(self, *failures: Exception) -> None:
        self.failures, self.compared = list(failures), 0

    async def compare(self) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.compared += 1


async def test_lists_are_compared_at_the_start_and_on_request() -> None:
    clock, lists = ManualClock(), Lists()
    comparison = ListComparison(lists.compare, clock)
    async with running(comparison.run()):
        await clock.run_tasks()
        assert (lists.compared, comparison.done.is_set()) == (1, True)
        comparison.request()
        comparison.request()
        await clock.run_tasks()
        assert lists.compared == 2


async def test_a_failed_comparison_is_retried(caplog: pytest.LogCaptureFixture) -> None:
    missing = NotFoundError(
        "GET https://host/apis/numapin.io/v1beta1/cpupolicies", 404, {"reason": "NotFound"}
    )
    clock = ManualClock()
    lists = Lists(missing, ConnectionFailedError("GET", "refused"))
    comparison = ListComparison(lists.compare, clock)
    async with running(comparison.run()):
        await clock.run_tasks()
        assert not comparison.done.is_set()
        await clock.advance(60)
        assert (lists.compared, comparison.done.is_set()) == (1, True)
    shown = [str(vars(record)["error"]) for record in caplog.records]
    assert shown[0].endswith("apply the CRDs of this version first: kubectl apply -k crds")
    assert "refused" in shown[1]
    assert not asyncio.all_tasks() - {asyncio.current_task()}
