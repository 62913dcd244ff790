from numapin_client.library_session import NO_ANSWER
from numapin_operator.observe.contact import GRACE_SECONDS, WatchContact, describe_outages
from support.fakes.manual_clock import ManualClock


async def test_only_outages_that_last_are_reported() -> None:
    clock = ManualClock()
    contact = WatchContact(["pods"], clock)
    contact.report("pods", "")
    assert describe_outages(contact.outages, clock.monotonic()) == {}
    contact.report("pods", "no answer yet")
    await clock.advance(GRACE_SECONDS - 1)
    contact.report("pods", "403 Forbidden")
    assert describe_outages(contact.outages, clock.monotonic()) == {}
    await clock.advance(1)
    assert describe_outages(contact.outages, clock.monotonic()) == {
        "pods": "out of date for 10 s: 403 Forbidden"
    }
    contact.report("pods", "")
    assert describe_outages(contact.outages, clock.monotonic()) == {}


async def test_a_watch_that_never_connected_is_reported() -> None:
    clock = ManualClock()
    contact = WatchContact(["pods"], clock)
    await clock.advance(GRACE_SECONDS)
    assert list(describe_outages(contact.outages, clock.monotonic())) == ["pods"]


def test_a_request_without_an_answer_does_not_hide_why_the_last_one_failed() -> None:
    contact = WatchContact(["pods"], ManualClock())
    contact.report("pods", "503 Service Unavailable")
    contact.report("pods", NO_ANSWER)
    assert contact.outages["pods"].why == "503 Service Unavailable"
    contact.report("pods", "")
    contact.report("pods", NO_ANSWER)
    assert contact.outages["pods"].why == NO_ANSWER
