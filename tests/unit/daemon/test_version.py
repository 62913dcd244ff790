"""The version that the programs print is that of the package."""

import tomllib
from pathlib import Path

from numapin_daemon.version import VERSION

PROJECT = Path(__file__).parents[3] / "pyproject.toml"


def test_it_is_that_of_the_project() -> None:
    assert tomllib.loads(PROJECT.read_text())["project"]["version"] == VERSION
