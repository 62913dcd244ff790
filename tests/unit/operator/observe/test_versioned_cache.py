from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from numapin_operator.observe.versioned_cache import REMEMBERED_DELETIONS, Mirror


@dataclass(frozen=True)
class Thing:
    name: str
    version: int


def test_the_newest_state_stands() -> None:
    mirror: Mirror[Thing] = Mirror()
    assert mirror.put(Thing("a", 2)) == {"a"}
    assert mirror.put(Thing("a", 1)) == set()
    assert mirror.put(Thing("a", 2)) == set()
    assert mirror["a"].version == 2


def test_a_late_state_does_not_raise_the_dead() -> None:
    mirror: Mirror[Thing] = Mirror()
    mirror.put(Thing("a", 2))
    assert mirror.drop("a", 5) == {"a"}
    assert mirror.put(Thing("a", 4)) == set()
    assert mirror.put(Thing("a", 6)) == {"a"}


def test_a_late_end_does_not_kill_the_reborn() -> None:
    mirror: Mirror[Thing] = Mirror()
    mirror.put(Thing("a", 6))
    assert mirror.drop("a", 5) == set()
    assert "a" in mirror


def test_settling_drops_ghosts_and_keeps_what_came_since() -> None:
    mirror: Mirror[Thing] = Mirror()
    for thing in (Thing("ghost", 2), Thing("kept", 3), Thing("newborn", 12)):
        mirror.put(thing)
    changed = mirror.settle([Thing("kept", 3), Thing("missed", 7)], 10)
    assert changed == {"ghost", "missed"}
    assert set(mirror) == {"kept", "missed", "newborn"}


def test_ends_are_not_remembered_for_ever() -> None:
    mirror: Mirror[Thing] = Mirror()
    for number in range(REMEMBERED_DELETIONS + 10):
        mirror.drop(f"name-{number}", number)
    assert len(mirror._deleted) == REMEMBERED_DELETIONS


HISTORY = st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=1, max_size=12)


@given(HISTORY, st.randoms(use_true_random=False))
def test_the_order_of_news_never_matters(history: list[tuple[str, bool]], random: object) -> None:
    """Whatever is late or told twice, the mirror ends up as the server is."""
    truth: dict[str, Thing] = {}
    news: list[tuple[Thing, bool]] = []
    for version, (name, dies) in enumerate(history):
        thing = Thing(name, version)
        news.append((thing, dies))
        if dies:
            truth.pop(name, None)
        else:
            truth[name] = thing
    shuffled = news + news[: len(news) // 2]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    mirror: Mirror[Thing] = Mirror()
    for thing, dies in shuffled:
        if dies:
            mirror.drop(thing.name, thing.version)
        else:
            mirror.put(thing)
    assert dict(mirror) == truth
