"""Pieces that every drawing is made of: the terminal, headings, counts, sizes."""

from collections.abc import Iterator
from typing import Final

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

_MIB: Final = 1 << 20
_GIB: Final = 1 << 30


def terminal() -> Console:
    """Standard output: colours on a terminal only, 80 columns where the width is not known."""
    return Console(highlight=False)


def section(title: str, body: RenderableType) -> Iterator[RenderableType]:
    """A heading after an empty line, and what stands under it, indented."""
    yield Text(f"\n{title}", style="bold")
    yield Padding(body, (0, 0, 0, 2))


def count(number: int, noun: str) -> str:
    """Such as `1 socket`, `4 sockets`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_bytes(size: int) -> str:
    """A size for people: GiB with one decimal, MiB below one GiB."""
    return f"{size / _GIB:.1f} GiB" if size >= _GIB else f"{size / _MIB:.0f} MiB"
