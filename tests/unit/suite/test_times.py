"""The table of times adds the rows of all streams, and is written into CONTRIBUTING.md."""

from pathlib import Path

import pytest

from support.suite.page import PAGE, with_times
from support.suite.times import Row, read, slow, table, write

ROWS = {
    ("unit", "tests/unit/test_a.py"): Row(10, 0, 2.0, 0.5, 1.5),
    ("virtual machines", "tests/e2e/test_vm.py"): Row(2, 0, 60.0, 30.0, 40.0),
}


def test_streams_add_their_rows_to_one_file(tmp_path: Path) -> None:
    file = tmp_path / "times"
    assert read(file) == {}
    write(file, ROWS)
    write(file, {("unit", "tests/unit/test_a.py"): Row(1, 2, 3.0, 0.5, 0.5)})
    assert read(file) == {**ROWS, ("unit", "tests/unit/test_a.py"): Row(11, 2, 5.0, 1.0, 2.0)}


def test_the_table_has_a_line_for_each_area_with_tests_and_one_for_all() -> None:
    head, _, *lines = table(ROWS)
    assert head == "| area | tests | skips | seconds | of these set-up | CPU seconds |"
    assert lines == [
        "| unit | 10 | 0 | 2 | 0 | 2 |",
        "| virtual machines | 2 | 0 | 60 | 30 | 40 |",
        "| all | 12 | 0 | 62 | 30 | 42 |",
    ]
    assert list(slow(ROWS)) == ["    60 s, set-up 30 s: tests/e2e/test_vm.py"]


def test_the_page_gets_the_table_of_the_last_run(tmp_path: Path) -> None:
    page = PAGE.read_text()
    with pytest.raises(ValueError, match="run `make test` first"):
        with_times(page, tmp_path / "times")
    write(tmp_path / "times", ROWS)
    written = with_times(page, tmp_path / "times")
    assert "\n| all | 12 | 0 | 62 | 30 | 42 |\n<!-- times: end -->" in written
    assert with_times(written, tmp_path / "times") == written
    with pytest.raises(ValueError, match="has 0 places"):
        with_times("", tmp_path / "times")
