"""Write the table of the last complete run into CONTRIBUTING.md: `make times`."""

import re
import sys
from pathlib import Path

from support.suite.streams import ROOT, TIMES
from support.suite.times import read, table

PAGE = ROOT / "CONTRIBUTING.md"
MARKED = re.compile(r"(<!-- times: begin -->\n).*?(<!-- times: end -->)", re.DOTALL)


def with_times(page: str, file: Path) -> str:
    """The page with the times in `file`.

    Raises:
        ValueError: the page has no place for them, or no run has left any.
    """
    rows = read(file)
    if not rows:
        raise ValueError(f"{file} has no times: run `make test` first")
    lines = "".join(f"{line}\n" for line in table(rows))
    written, places = MARKED.subn(lambda found: found[1] + lines + found[2], page)
    if places != 1:
        raise ValueError(f"the page has {places} places for times")
    return written


if __name__ == "__main__":
    try:
        PAGE.write_text(with_times(PAGE.read_text(), TIMES))
    except ValueError as error:
        sys.exit(str(error))
