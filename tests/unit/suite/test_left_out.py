"""Whatever `make test` leaves out is run before a release."""

import re

from support.suite.streams import ROOT


def test_each_command_that_runs_what_is_left_out_is_part_of_before_release() -> None:
    tests = [one.read_text() for one in (ROOT / "tests").rglob("*.py")]
    marks = re.compile(r"mark\.run_by\(\s*\"make ([a-z-]+)\"")
    named = {name for text in tests for name in marks.findall(text)}
    makefile = (ROOT / "Makefile").read_text()
    (recipe,) = re.findall(r"^before-release:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert named >= {"before-release", "steps", "systemd", "newer-kernel"}
    assert named - {"before-release"} <= set(re.findall(r"\$\(MAKE\) ([a-z-]+)", recipe))
    assert "`make before-release`" in (ROOT / "CONTRIBUTING.md").read_text()


def test_before_release_runs_every_file_with_such_tests() -> None:
    marked = {
        str(one.relative_to(ROOT))
        for one in (ROOT / "tests").rglob("test_*.py")
        if re.search(r"^@before_release$", one.read_text(), re.MULTILINE)
    }
    (line,) = re.findall(
        r"^\tNUMAPIN_TEST_BEFORE_RELEASE=1 .*", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    assert marked == set(re.findall(r"tests/\S+", line))
