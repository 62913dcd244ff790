"""A background task runs when it is asked to, and recovers from whatever its work raises."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

import pytest

from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_daemon.worker import Worker
from support.fakes.manual_clock import ManualClock
from support.fakes.scripted_work import BusyError, DownError, LongestWaits, Work
from support.real.waiting import running


@pytest.fixture
def work(clock: ManualClock) -> Work:
    return Work(clock)


@pytest.fixture
def problems() -> list[str]:
    """What `problem` was each time that the worker woke the loop."""
    return []


@pytest.fixture
async def worker(clock: ManualClock, work: Work, problems: list[str]) -> AsyncIterator[Worker]:
    backoff = Backoff(base_seconds=1, cap_seconds=8, jitter=LongestWaits())
    made = Worker(
        "test",
        work,
        expected=(BusyError, DownError),
        failure="the work failed",
        wake=lambda: problems.append(str(made.problem)),
        backoff=backoff,
        clock=clock,
    )
    task = asyncio.create_task(made.run())
    yield made
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_nothing_runs_until_it_is_requested(
    worker: Worker, work: Work, clock: ManualClock
) -> None:
    await clock.advance(100)
    assert work.ran_at == []


async def test_requests_before_a_run_are_served_by_that_run(
    worker: Worker, work: Work, clock: ManualClock
) -> None:
    worker.request()
    worker.request()
    await clock.advance(100)
    assert work.ran_at == [0]


async def test_requests_during_a_run_lead_to_one_more(
    worker: Worker, work: Work, clock: ManualClock
) -> None:
    work.lasts_seconds = 5
    worker.request()
    await clock.advance(1)
    worker.request()
    await clock.advance(1)
    worker.request()
    await clock.advance(100)
    assert work.ran_at == [0, 5]


async def test_work_may_ask_to_run_again_unless_requested_earlier(
    worker: Worker, work: Work, clock: ManualClock
) -> None:
    work.script.extend([0.5, 3.0, 3.0, None])
    worker.request()
    await clock.advance(1.5)
    assert work.ran_at == [0, 0.5]
    worker.request()
    await clock.advance(100)
    assert work.ran_at == [0, 0.5, 1.5, 4.5]


async def test_work_that_asks_to_run_again_at_once_does_not_block_the_loop(
    worker: Worker, work: Work, clock: ManualClock
) -> None:
    work.script.extend([0.0] * 3)
    worker.request()
    await clock.advance(0)
    assert work.ran_at == [0] * 4


async def test_a_failure_is_retried_after_a_growing_back_off(
    worker: Worker, work: Work, clock: ManualClock
) -> None:
    work.script.extend([BusyError("busy")] * 5)
    worker.request()
    await clock.advance(100)
    assert work.ran_at == [0, 1, 3, 7, 15, 23]
    work.script.append(BusyError("busy"))
    worker.request()
    await clock.advance(100)
    assert work.ran_at[6:] == [100, 101], "a success resets the back-off"


async def test_progress_of_a_long_run_clears_the_problem_and_resets_the_back_off(
    worker: Worker, work: Work, clock: ManualClock
) -> None:
    work.script.extend([BusyError("busy")] * 3)
    worker.request()
    await clock.advance(4)
    assert work.ran_at == [0, 1, 3]
    assert repr(worker.problem) == "BusyError('busy')"
    work.script.extend([BusyError("busy")] * 2)
    work.lasts_seconds = 10
    await clock.advance(5)
    worker.note_progress()
    assert worker.problem is None
    await clock.advance(100)
    assert work.ran_at == [0, 1, 3, 7, 18, 30]


async def test_what_the_server_asks_to_wait_is_added(
    worker: Worker, work: Work, clock: ManualClock
) -> None:
    work.script.append(BusyError("busy", retry_after_seconds=30))
    worker.request()
    await clock.advance(100)
    assert work.ran_at == [0, 31]


async def test_a_request_does_not_shorten_a_back_off_unless_it_says_so(
    worker: Worker, work: Work, clock: ManualClock
) -> None:
    work.script.extend([BusyError("busy", retry_after_seconds=30)] * 2)
    worker.request()
    await clock.advance(10)
    worker.request()
    await clock.advance(10)
    assert work.ran_at == [0]
    worker.request(skip_backoff=True)
    await clock.advance(100)
    assert work.ran_at == [0, 20, 52]


async def test_a_run_serves_the_requests_made_during_the_back_off(
    worker: Worker, work: Work, clock: ManualClock
) -> None:
    work.script.append(BusyError("busy"))
    worker.request()
    await clock.advance(0.5)
    worker.request()
    await clock.advance(100)
    assert work.ran_at == [0, 1]


@pytest.mark.parametrize("failures", [[], [BusyError("busy", retry_after_seconds=100)]])
async def test_a_run_that_a_cancellation_interrupts_is_repeated(
    clock: ManualClock, work: Work, failures: list[Exception]
) -> None:
    """Cancelled during the run, or during the back-off after it."""
    work.lasts_seconds = 5
    work.script.extend(failures)
    worker = Worker("interrupted", work, expected=(BusyError,), clock=clock)
    worker.request()
    task = asyncio.create_task(worker.run())
    await clock.advance(6 if failures else 1)
    task.cancel()
    await clock.advance(0)
    task = asyncio.create_task(worker.run())
    await clock.advance(10)
    assert len(work.ran_at) == 2
    task.cancel()


async def test_the_problem_is_known_until_a_run_succeeds(
    worker: Worker, work: Work, clock: ManualClock, problems: list[str]
) -> None:
    work.script.extend([BusyError("busy"), BusyError("busy"), BusyError("very busy")])
    worker.request()
    await clock.advance(0)
    assert repr(worker.problem) == "BusyError('busy')"
    await clock.advance(100)
    assert worker.problem is None
    assert problems == ["busy", "very busy", "None"], "the loop is woken by changes only"


async def test_the_problem_that_is_kept_has_no_frames(clock: ManualClock) -> None:
    async def fail() -> None:
        try:
            raise OSError("below")  # noqa: TRY301
        except OSError as error:
            raise ValueError("above") from error

    worker = Worker("w", fail, clock=clock)
    worker.request()
    async with running(worker.run()):
        await clock.until(lambda: worker.problem is not None)
        assert repr(worker.problem) == "ValueError('above')"
        assert worker.problem is not None
        assert (worker.problem.__traceback__, worker.problem.__cause__) == (None, None)


async def test_an_expected_error_is_logged_when_it_first_occurs(
    worker: Worker, work: Work, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    work.script.extend([BusyError("a"), BusyError("b"), DownError("c"), None])
    worker.request()
    await clock.advance(100)
    logged = [(one.message, str(one.__dict__["error"]), one.exc_info) for one in caplog.records]
    assert logged == [("the work failed", "a", None), ("the work failed", "c", None)]
    assert caplog.records[0].__dict__["task"] == "test"


async def test_an_unexpected_exception_is_logged_with_its_traceback_and_retried(
    worker: Worker, work: Work, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    work.script.append(ZeroDivisionError("a defect"))
    worker.request()
    await clock.advance(0)
    assert repr(worker.problem) == "ZeroDivisionError('a defect')"
    (record,) = caplog.records
    assert (record.levelname, record.exc_info is not None) == ("ERROR", True)
    await clock.advance(1)
    assert work.ran_at == [0, 1]
    assert worker.problem is None


async def test_work_that_logs_its_errors_itself_is_not_logged(
    clock: ManualClock, work: Work, caplog: pytest.LogCaptureFixture
) -> None:
    work.script.append(DownError("down"))
    worker = Worker("quiet", work, expected=(DownError,), failure="", clock=clock)
    task = asyncio.create_task(worker.run())
    worker.request()
    await clock.advance(0)
    assert str(worker.problem) == "down"
    assert not caplog.records
    task.cancel()


async def test_a_queue_is_drained_and_keeps_what_failed(clock: ManualClock) -> None:
    queue, posted = deque(["a", "b", "c"]), list[str]()
    refused = ["b"]

    async def post_all() -> None:
        while queue:
            if queue[0] in refused:
                raise BusyError(refused.pop())
            posted.append(queue.popleft())

    worker = Worker("queue", post_all, expected=(BusyError,), clock=clock)
    task = asyncio.create_task(worker.run())
    worker.request()
    await clock.advance(0)
    assert posted == ["a"]
    await clock.advance(10)
    assert posted == ["a", "b", "c"]
    task.cancel()


async def test_a_pause_goes_on_when_the_worker_runs_again(clock: ManualClock, work: Work) -> None:
    work.script.extend([60.0, None])
    worker = Worker("again", work, clock=clock)
    worker.request()
    async with running(worker.run()):
        await clock.advance(10)
    await clock.advance(20)
    async with running(worker.run()):
        await clock.advance(29)
        assert work.ran_at == [0]
        await clock.advance(100)
    assert work.ran_at == [0, 60]


async def test_a_pause_that_ended_while_the_worker_did_not_run_is_over(
    clock: ManualClock, work: Work
) -> None:
    work.script.extend([60.0, None])
    worker = Worker("again", work, clock=clock)
    worker.request()
    async with running(worker.run()):
        await clock.advance(10)
    await clock.advance(1000)
    async with running(worker.run()):
        await clock.advance(1000)
    assert work.ran_at == [0, 1010]
