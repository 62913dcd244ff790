"""Standard output that is drawn again: cleared on a terminal, one block after the other else."""

import sys
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


class Screen(Generic[T]):
    """Draws values as text, each only if it differs from the last one."""

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
