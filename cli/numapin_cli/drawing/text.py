"""The terminal and the headings of every drawing."""

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text


def terminal() -> Console:
    """Standard output: colours on a terminal only, 80 columns where the width is not known."""
    return Console(highlight=False)


def section(title: str, body: RenderableType) -> Iterator[RenderableType]:
    """A heading after an empty line, then the body, indented."""
    yield Text(f"\n{title}", style="bold")
    yield Padding(body, (0, 0, 0, 2))
