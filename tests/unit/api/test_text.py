"""Text that is cut stays within its limit and says that it was cut."""

from hypothesis import given
from hypothesis import strategies as st

from numapin_api.text import cut_text, first_texts, join_texts


def test_a_short_text_stays() -> None:
    assert cut_text("four", 4) == "four"
    assert cut_text("longer", 5) == "lo..."
    assert cut_text("a\ud800b", 8) == "a\\ud800b"


def test_what_a_terminal_could_obey_is_escaped() -> None:
    """A tenant names cgroups as it likes, and messages show the names."""
    hostile = "\x1b[2Jreset\x07\n\x9b1m\u202egnp"
    assert cut_text(hostile, 99) == r"\x1b[2Jreset\x07\n\x9b1m\u202egnp"
    assert cut_text("Größe 2", 99) == "Größe 2"
    assert join_texts(["a\tb", "c"], "; ", 20) == r"a\tb; c"


def test_a_list_says_how_many_more_there_are() -> None:
    assert join_texts(["one", "two"], "; ", 20) == "one; two"
    assert join_texts(["one", "two", "three three"], "; ", 16) == "one; and 2 more"
    assert join_texts(["x" * 40, "two"], "; ", 20) == "xxxxx...; and 1 more"
    assert first_texts(["one", "two"], 2) == "one, two"
    assert first_texts(["one", "two", "three"], 1) == "one and 2 more"
    assert first_texts(["one"], 1, "; ", of=3) == "one; and 2 more"
    assert first_texts(["one", "two"], 1, " ") == "one and 1 more"


@given(st.lists(st.text(max_size=40), max_size=30), st.integers(30, 200))
def test_a_list_stays_within_its_limit(texts: list[str], limit: int) -> None:
    joined = join_texts(texts, "; ", limit)
    assert len(joined) <= limit
    joined.encode()
