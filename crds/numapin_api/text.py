"""Text for people, cut to the limits of the API."""

from collections.abc import Sequence
from typing import Final

MARK: Final = "..."


def cut_text(text: str, limit: int) -> str:
    """The text with at most `limit` characters, at least 3; a mark shows where it was cut.

    Characters that no UTF-8 text can have, which only Python accepts, become question marks.
    """
    if not text.isascii():
        text = text.encode(errors="replace").decode()
    return text if len(text) <= limit else text[: limit - len(MARK)] + MARK


def join_texts(texts: Sequence[str], separator: str, limit: int) -> str:
    """The first texts joined, as many as `limit` characters hold, and how many more there are.

    A first text that is too long by itself is cut.
    """
    whole = separator.join(texts)
    if len(whole) <= limit:
        return cut_text(whole, limit)
    joined, shown = "", 0
    for text in texts:
        longer = separator.join(filter(None, (joined, text)))
        if len(longer + _more(separator, len(texts))) > limit:
            break
        joined, shown = longer, shown + 1
    if shown:
        return cut_text(joined + _more(separator, len(texts) - shown), limit)
    more = _more(separator, len(texts) - 1) if len(texts) > 1 else ""
    return cut_text(texts[0], limit - len(more)) + more


def _more(separator: str, count: int) -> str:
    return f"{separator}and {count} more"
