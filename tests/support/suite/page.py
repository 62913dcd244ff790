"""Write the table of the last complete run into CONTRIBUTING.md: `make times`."""

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from support.suite.streams import ROOT, TIMES
from support.suite.times import read, table

PAGE = ROOT / "CONTRIBUTING.md"


def between_marks(page: str, name: str, lines: Iterable[str]) -> str:
    """The page with these lines between `<!-- NAME: begin -->` and `<!-- NAME: end -->`.

    Raises:
        ValueError: it has no place for them, or several.
    """
    marked = re.compile(rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)", re.DOTALL)
    text = "".join(f"{line}\n" for line in lines)
    written, places = marked.subn(lambda found: found[1] + text + found[2], page)
    if places != 1:
        raise ValueError(f"the page has {places} places for {name}")
    return written


def with_times(page: str, file: Path) -> str:
    """The page with the times in `file`.

    Raises:
        ValueError: the page has no place for them, or no run has left any.
    """
    rows = read(file)
    if not rows:
        raise ValueError(f"{file} has no times: run `make test` first")
    return between_marks(page, "times", table(rows))


if __name__ == "__main__":
    try:
        PAGE.write_text(with_times(PAGE.read_text(), TIMES))
    except ValueError as error:
        sys.exit(str(error))
