"""The terminal and the headings of every drawing."""

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from numapin_cli.printable import printable


def terminal() -> Console:
    """Standard output: colours on a terminal only, 80 columns where the width is not known."""
    return Console(highlight=False)


def rendered(drawing: RenderableType, least_width: int = 0) -> str:
    """A drawing as the terminal would have it, with no space at the end of a line.

    It is `least_width` columns wide or more; a terminal wraps or cuts what is wider.
    """
    console = terminal()
    console.width = max(console.width, least_width)
    with console.capture() as captured:
        console.print(drawing)
    return "".join(f"{line.rstrip(' ')}\n" for line in captured.get().splitlines())


def section(title: str, body: RenderableType) -> Iterator[RenderableType]:
    """A heading after an empty line, then the body, indented."""
    yield Text(f"\n{title}", style="bold")
    yield Padding(body, (0, 0, 0, 2))


def plain(text: str, style: str = "") -> Text:
    """A text of others: neither markup nor what a terminal would obey."""
    return Text(printable(text), style)
