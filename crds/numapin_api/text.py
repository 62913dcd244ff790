"""Text for people, cut to the limits of the API."""

from collections.abc import Sequence
from typing import Final

MARK: Final = "..."


def printable(text: str) -> str:
    """The text with each character escaped that a terminal could obey, or no UTF-8 text can have.

    Tenants choose names of cgroups: any bytes but `/` and NUL.
    """
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


def escaped(raw: bytes) -> str:
    """A name that others have chosen, in any bytes, as printable ASCII."""
    return printable(raw.decode("ascii", "backslashreplace"))


def cut_text(text: str, limit: int) -> str:
    """The text with at most `limit` characters, at least 3; a mark shows where it was cut.

    What is not printable is escaped, also ends of lines.
    """
    text = printable(text)
    return text if len(text) <= limit else text[: limit - len(MARK)] + MARK


def join_texts(texts: Sequence[str], separator: str, limit: int, *, of: int = 0) -> str:
    """The first texts joined, as many as `limit` characters hold, and how many more there are.

    A first text that is too long by itself is cut. `of` is how many there are in all, if `texts`
    are only the first of them.
    """
    total, whole = max(of, len(texts)), separator.join(texts)
    if len(whole) <= limit and total == len(texts):
        return cut_text(whole, limit)
    room = limit - len(_more(separator, total))
    joined, shown = "", 0
    for text in texts:
        longer = separator.join(filter(None, (joined, text)))
        if len(longer) > room:
            break
        joined, shown = longer, shown + 1
    if texts and not shown:
        joined, shown = cut_text(texts[0], room), 1
    more = _more(separator, total - shown) if total > shown else ""
    return cut_text(joined, limit - len(more)) + more


def first_texts(texts: Sequence[str], most: int, separator: str = ", ", *, of: int = 0) -> str:
    """The first `most` texts joined, and how many more there are; `of` is as in `join_texts`."""
    shown, total = texts[:most], max(of, len(texts))
    more = _more(separator, total - len(shown)) if total > len(shown) else ""
    return separator.join(shown) + more


def _more(separator: str, count: int) -> str:
    return f"{separator.strip(', ')} and {count} more"
