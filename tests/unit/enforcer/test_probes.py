"""The probe pages over real HTTP on a free port of the loopback."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession

from numapin_enforcer.health import AddressError, Health, build_application, serve


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def health(clock: Clock) -> Health:
    return Health(stale_after_seconds=30, clock=clock)


@pytest.fixture
async def url(health: Health) -> AsyncIterator[str]:
    runner = await serve(build_application(health), "127.0.0.1", 0)
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def _get(url: str) -> tuple[int, str]:
    async with ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def test_a_loop_that_passes_is_healthy(url: str, health: Health, clock: Clock) -> None:
    clock.now += 29
    assert await _get(f"{url}/healthz") == (200, "ok\n")


async def test_a_loop_that_stands_still_is_not(url: str, health: Health, clock: Clock) -> None:
    clock.now += 31
    assert await _get(f"{url}/healthz") == (503, "the last pass ended 31 s ago\n")
    health.passed({})
    assert await _get(f"{url}/healthz") == (200, "ok\n")


async def test_what_only_a_restart_mends_asks_for_one(url: str, health: Health) -> None:
    health.passed({})
    health.outdated = "the kubelet has replaced a file"
    assert await _get(f"{url}/healthz") == (503, "the kubelet has replaced a file\n")


async def test_ready_only_when_nothing_is_missing(url: str, health: Health) -> None:
    health.passed({"runtime": "does not answer", "assignment": "none yet"})
    assert await _get(f"{url}/readyz") == (
        503,
        "assignment: none yet\nruntime: does not answer\n",
    )
    health.passed({})
    assert await _get(f"{url}/readyz") == (200, "ok\n")


async def test_not_ready_before_the_first_pass(url: str) -> None:
    status, text = await _get(f"{url}/readyz")
    assert (status, text) == (503, "first pass: not ended yet\n")


async def test_an_address_in_use_is_an_error(url: str, health: Health) -> None:
    port = int(url.rpartition(":")[2])
    with pytest.raises(AddressError, match="--health-address"):
        await serve(build_application(health), "127.0.0.1", port)
