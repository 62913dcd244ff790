"""Events within the limits of the API."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_api.text import printable
from numapin_client.client import ApiClient
from numapin_client.events import Event, Reporter, build_event, object_reference, post_event
from numapin_client.resources import Json
from support.fakes.apiserver import FakeApiServer
from support.fakes.manual_clock import ManualClock


def event(note: str = "because", instance: str = "me", name: str = "pod") -> Json:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ns"}}
    pinned = Event("Normal", "Pinned", "Pin", note)
    reporter = Reporter("numapin.io/x", instance)
    return build_event(object_reference(body), pinned, reporter, "2026-01-02T03:04:05.000678Z")


def test_an_event_says_what_who_and_when() -> None:
    written = event()
    assert written["metadata"].pop("name").startswith("pod.")
    assert written == {
        "metadata": {"namespace": "ns"},
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "pod"},
        "type": "Normal",
        "reason": "Pinned",
        "action": "Pin",
        "note": "because",
        "eventTime": "2026-01-02T03:04:05.000678Z",
        "reportingController": "numapin.io/x",
        "reportingInstance": "me",
    }


def test_two_events_have_two_names() -> None:
    assert event()["metadata"]["name"] != event()["metadata"]["name"]


def test_an_event_that_is_posted_once_is_named_after_its_object_and_reason() -> None:
    def name(uid: str, reason: str, note: str) -> str:
        once = Event("Normal", reason, "Pin", note, is_once=True)
        regarding = {"name": "pod", "uid": uid}
        written = build_event(regarding, once, Reporter("numapin.io/x", "me"), "now")
        return str(written["metadata"]["name"])

    assert name("1", "Waits", "for 2 CPUs") == name("1", "Waits", "for 3 CPUs")
    assert len({name("1", "Waits", ""), name("2", "Waits", ""), name("1", "Pinned", "")}) == 3


@settings(deadline=None)
@given(st.text(max_size=2000))
def test_a_note_is_cut_to_whole_characters(note: str) -> None:
    written = event(note=note)["note"]
    assert len(written.encode()) <= 1024
    whole = printable(note)
    assert written == whole or (written[-1] == "…" and whole.startswith(written[:-1]))


@pytest.mark.parametrize("name", ["n" * 253, "a." * 126 + "a", "short"])
def test_the_name_of_an_event_is_a_valid_one(name: str) -> None:
    written = event(name=name)["metadata"]["name"]
    assert len(written) <= 253
    assert all(part and part[0].isalnum() and part[-1].isalnum() for part in written.split("."))


async def test_an_event_is_posted_with_the_time_of_the_clock(
    server: FakeApiServer, client: ApiClient
) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    pinned, reporter = Event("Normal", "Pinned", "Pin", "because"), Reporter("numapin.io/x", "me")
    await post_event(client, object_reference(node), pinned, reporter, ManualClock())
    (stored,) = server.objects.values()
    assert stored["eventTime"] == "2030-01-01T00:00:00.000000Z"
    assert stored["metadata"]["namespace"] == "default"
