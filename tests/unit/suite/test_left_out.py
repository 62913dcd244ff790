"""Whatever `make test` leaves out is run before a release."""

import re

from support.suite.release_check import CHECKS
from support.suite.streams import ROOT


def test_each_command_that_runs_what_is_left_out_is_part_of_the_release_check() -> None:
    tests = [one.read_text() for one in (ROOT / "tests").rglob("*.py")]
    marks = re.compile(r"mark\.run_by\(\s*\"make ([a-z-]+)\"")
    named = {name for text in tests for name in marks.findall(text)}
    assert named >= {"before-release", "steps", "systemd", "newer-kernel"}
    assert named <= {one.command[-1] for one in CHECKS}
    assert "`make release-check`" in (ROOT / "CONTRIBUTING.md").read_text()


def test_before_release_runs_every_file_with_such_tests() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (listed,) = re.findall(r"^BEFORE_RELEASE := (.*)", makefile, re.MULTILINE)
    chosen = [ROOT / "tests" / one for one in listed.split()]
    assert all(one.exists() for one in chosen)
    files = [
        one for kind in ("e2e", "integration") for one in (ROOT / "tests" / kind).rglob("*.py")
    ]
    marked = [
        one
        for one in files
        if re.search("before_release$|BEFORE_RELEASE in", one.read_text(), re.MULTILINE)
    ]
    assert marked
    for file in marked:
        assert any(file == one or one in file.parents for one in chosen), file
