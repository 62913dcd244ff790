"""What no automatic run repeats: its results are on a page, with date and commit."""

import subprocess
from pathlib import Path

import pytest

from support.suite.release_check import (
    CHECKS,
    NOT_RUN,
    PAGE,
    Check,
    Result,
    commit_of,
    main,
    read_results,
    with_results,
)
from support.suite.streams import ROOT

GOOD = Check("good", "that it passes", ("true",))
BAD = Check("bad", "that it fails", ("sh", "-c", "exit $NUMAPIN_TEST"), {"NUMAPIN_TEST": "3"})
EMPTY = "# Title\n\n<!-- results: begin -->\n<!-- results: end -->\n\nThe end.\n"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    made = tmp_path / "page.md"
    made.write_text(EMPTY)
    return made


def results(page: Path) -> dict[str, Result]:
    return read_results(page.read_text())


def test_results_are_written_and_the_status_says_whether_one_failed(page: Path) -> None:
    assert main([], (GOOD, BAD), page) == 1
    assert {name: one.text for name, one in results(page).items()} == {
        "good": "passed",
        "bad": "FAILED (exit status 3)",
    }
    assert page.read_text().endswith("\n\nThe end.\n")


def test_a_check_that_is_not_run_keeps_its_last_result(page: Path) -> None:
    before = {"good": Result("passed", "2026-01-02", "0123abcd", "7")}
    page.write_text(with_results(EMPTY, (GOOD, BAD), before))
    assert main(["bad"], (GOOD, BAD), page) == 1
    assert results(page)["good"] == before["good"]
    assert main(["good"], (GOOD, BAD), page) == 0
    assert results(page)["good"].date > "2026-01-02"
    assert results(page)["bad"].has_failed


def test_a_check_that_never_ran_says_so(page: Path) -> None:
    page.write_text(with_results(EMPTY, (GOOD, BAD), {}))
    assert results(page)["good"].text == NOT_RUN
    assert not results(page)["good"].has_failed


def test_an_unknown_name_is_refused_with_what_there_is(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["god"], (GOOD, BAD), page)
    assert "no check god; there are good, bad" in capsys.readouterr().err
    assert page.read_text() == EMPTY


def test_a_page_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="0 places"):
        with_results("# Title\n", (GOOD,), {})


def test_a_changed_file_is_named_but_for_the_page(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True, capture_output=True)

    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / PAGE.name).write_text("page")
    (tmp_path / "code").write_text("code")
    git("init", "-q")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@example", "commit", "-qm", "first")
    commit = commit_of(tmp_path)
    assert len(commit) == 8
    (tmp_path / "docs" / PAGE.name).write_text("results")
    assert commit_of(tmp_path) == commit
    (tmp_path / "code").write_text("other code")
    assert commit_of(tmp_path) == f"{commit} and changes"


def test_the_page_has_a_row_for_each_check() -> None:
    assert list(results(PAGE)) == [one.name for one in CHECKS]
    makefile = (ROOT / "Makefile").read_text()
    for one in CHECKS:
        if one.command[0] == "make":
            assert f"\n{one.command[1]}: " in makefile
        else:
            assert (ROOT / one.command[0]).exists()
