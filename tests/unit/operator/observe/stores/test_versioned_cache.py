from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from numapin_operator.observe.stores.versioned_cache import (
    REMEMBERED_DELETIONS,
    Listed,
    VersionedCache,
)


@dataclass(frozen=True)
class Thing:
    name: str
    version: int


def test_the_newest_state_wins() -> None:
    cache: VersionedCache[Thing] = VersionedCache()
    assert cache.put(Thing("a", 2)) == {"a"}
    assert cache.put(Thing("a", 1)) == set()
    assert cache.put(Thing("a", 2)) == set()
    assert cache["a"].version == 2


def test_a_late_state_does_not_bring_back_a_deleted_object() -> None:
    cache: VersionedCache[Thing] = VersionedCache()
    cache.put(Thing("a", 2))
    assert cache.drop("a", 5) == {"a"}
    assert cache.put(Thing("a", 4)) == set()
    assert cache.put(Thing("a", 6)) == {"a"}


def test_a_late_deletion_does_not_remove_a_newer_object() -> None:
    cache: VersionedCache[Thing] = VersionedCache()
    cache.put(Thing("a", 6))
    assert cache.drop("a", 5) == set()
    assert "a" in cache


def test_a_list_removes_what_was_deleted_and_keeps_what_is_newer() -> None:
    cache: VersionedCache[Thing] = VersionedCache()
    for thing in (Thing("deleted", 2), Thing("kept", 3), Thing("newer", 12)):
        cache.put(thing)
    changed = cache.replace(Listed((Thing("kept", 3), Thing("missed", 7)), 10))
    assert changed == {"deleted", "missed"}
    assert set(cache) == {"kept", "missed", "newer"}


def test_an_older_list_that_comes_later_brings_nothing_back() -> None:
    cache: VersionedCache[Thing] = VersionedCache()
    cache.replace(Listed((), 10))
    assert cache.replace(Listed((Thing("deleted", 4),), 5)) == set()
    assert cache.put(Thing("deleted", 7)) == set()
    assert cache.put(Thing("new", 11)) == {"new"}


def test_the_number_of_remembered_deletions_is_bounded() -> None:
    cache: VersionedCache[Thing] = VersionedCache()
    for number in range(REMEMBERED_DELETIONS + 10):
        cache.drop(f"name-{number}", number)
    assert len(cache._deleted) == REMEMBERED_DELETIONS


HISTORY = st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=1, max_size=12)


@given(HISTORY, st.randoms(use_true_random=False))
def test_the_order_of_events_never_matters(history: list[tuple[str, bool]], random: object) -> None:
    """However late or repeated the events are, the cache ends with the server's state."""
    expected: dict[str, Thing] = {}
    events: list[tuple[Thing, bool]] = []
    for version, (name, deleted) in enumerate(history):
        thing = Thing(name, version)
        events.append((thing, deleted))
        if deleted:
            expected.pop(name, None)
        else:
            expected[name] = thing
    shuffled = events + events[: len(events) // 2]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    cache: VersionedCache[Thing] = VersionedCache()
    for thing, deleted in shuffled:
        if deleted:
            cache.drop(thing.name, thing.version)
        else:
            cache.put(thing)
    assert dict(cache) == expected


def test_what_is_older_than_a_list_that_lacks_it_stays_deleted() -> None:
    """The answer to a write may come after a list that was read later."""
    cache: VersionedCache[Thing] = VersionedCache()
    cache.replace(Listed((Thing("kept", 3),), 10))
    assert cache.put(Thing("a", 9)) == set()
    assert cache.put(Thing("kept", 4)) == {"kept"}
    cache.start_over()
    assert cache.put(Thing("a", 2)) == {"a"}
