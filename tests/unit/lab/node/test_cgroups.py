"""Cgroups are found while others end."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from numapin_lab.errors import LabError
from numapin_lab.node.cgroups import below, named

ROOT = Path(__file__).parents[4]
OF_RUNNING_NODES = ("lab", "campaigns", "benchmarks", "tests/e2e")
RACES = re.compile(r"""\.rglob\(|\.glob\(f?["'][^"']*\*\*""")
OF_FILES = {"lab/numapin_lab/images/build.py", "lab/numapin_lab/vm/node_files.py"}


def test_a_cgroup_that_ends_during_the_search_is_left_out(tmp_path: Path) -> None:
    for name in ("a/first", "b/second", "c/third"):
        (tmp_path / name).mkdir(parents=True)
    found = below(tmp_path)
    next(found)
    for ended in ("a/first", "a"):
        (tmp_path / ended).rmdir()
    assert {one.name for one in found} >= {"b", "second", "c", "third"}


def test_a_cgroup_is_found_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "pod1" / "main").mkdir(parents=True)
    assert named(tmp_path, "main") == tmp_path / "pod1" / "main"
    with pytest.raises(LabError, match="has the name other"):
        named(tmp_path, "other")


def sources() -> Iterator[Path]:
    for top in OF_RUNNING_NODES:
        yield from (ROOT / top).rglob("*.py")


def test_no_search_of_a_running_node_fails_because_something_ended() -> None:
    """pathlib raises an error there, once in some hundred runs."""
    found = {str(one.relative_to(ROOT)) for one in sources() if RACES.search(one.read_text())}
    assert found <= OF_FILES
