"""What is drawn again: an answer on standard output, and how far a command has come."""

import sys
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_CLEAR = "\x1b[H\x1b[2J\x1b[3J"
_CLEAR_LINE: Final = "\r\x1b[K"
_SHOWN_SECONDS: Final = 0.2


class Screen(Generic[T]):
    """Draws values as text, each only if it differs from the last one.

    A terminal is cleared; else one block follows the other.
    """

    def __init__(self, text_of: Callable[[T], str]) -> None:
        """Args: `text_of` makes the whole text, with colours if the terminal has them."""
        self._text_of = text_of
        self._last: str | None = None

    def show(self, value: T, problem: str = "") -> None:
        """Draw a value, and why it may be out of date."""
        text = self._text_of(value)
        if problem:
            text += f"\nnot up to date: {problem}\n"
        if text == self._last:
            return
        is_terminal = sys.stdout.isatty()
        if self._last is not None and not is_terminal:
            text = f"\n{text}"
        self._last = text.removeprefix("\n") if not is_terminal else text
        sys.stdout.write(f"{_CLEAR}{text}" if is_terminal else text)
        sys.stdout.flush()


class Progress:
    """One line on standard error that is written over; nothing where that is no terminal."""

    def __init__(self) -> None:
        self._is_shown, self._last = sys.stderr.isatty(), 0.0

    def show(self, text: str) -> None:
        """Show a text, some times a second at most."""
        now = time.monotonic()
        if self._is_shown and now - self._last > _SHOWN_SECONDS:
            self._last = now
            print(f"{_CLEAR_LINE}{text}", end="", file=sys.stderr, flush=True)

    def read(self, resource: str, count: int) -> None:
        """Show how many objects have been read."""
        self.show(f"reading {resource}: {count:,}")

    def clear(self) -> None:
        """Clear the line, before something else is printed."""
        if self._is_shown and self._last:
            print(_CLEAR_LINE, end="", file=sys.stderr, flush=True)
