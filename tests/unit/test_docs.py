"""The documentation names only files and tests that exist."""

import json
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from numapin_cli.main import main

TOP = Path(__file__).parents[2]
ABOUT_THIS_VERSION = ("*.md", "docs/**/*.md")
PAGES = sorted(
    path.relative_to(TOP)
    for one in ABOUT_THIS_VERSION
    for path in TOP.glob(one)
    if path.name != "CHANGELOG.md"
)
OTHER_PAGES = [Path("CHANGELOG.md"), *(path.relative_to(TOP) for path in TOP.glob("tests/*/*.md"))]
"""Pages that also name files of past versions or of other projects."""

LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(
    r"(?<![\w/.~-])(?:benchmarks|campaigns|cli|client|crds|daemon|docs|enforcer|examples|lab|manifests|operator|page|tests)"
    r"/[\w./*-]*[\w*]"
)
MODULE = re.compile(r"-m (numapin_\w+(?:\.\w+)*)")
TEST = re.compile(r"`(?:[\w/]+/)?((?:test|guest)_\w+(?:\.py)?)`")


@pytest.mark.parametrize("page", [*PAGES, *OTHER_PAGES], ids=str)
def test_relative_links_lead_to_existing_files_and_titles(page: Path) -> None:
    broken = []
    for target in _links(page):
        name, _, title = target.partition("#")
        file = (TOP / page).parent / name if name else TOP / page
        if not file.exists() or (title and title not in _anchors(file.read_text())):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_quoted_paths_exist(page: Path) -> None:
    quoted = set(PATH.findall((TOP / page).read_text()))
    assert not [path for path in sorted(quoted) if not any(TOP.glob(path))]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_quoted_tests_exist(page: Path) -> None:
    quoted = set(TEST.findall((TOP / page).read_text()))
    if not quoted:
        return
    files = list((TOP / "tests").rglob("*.py"))
    functions = re.findall(r"def (test_\w+)", "\n".join(file.read_text() for file in files))
    assert not quoted - {file.name for file in files} - set(functions)


@pytest.mark.parametrize("page", [*PAGES, Path("Makefile")], ids=str)
def test_quoted_modules_exist(page: Path) -> None:
    quoted = set(MODULE.findall((TOP / page).read_text()))
    assert not [name for name in sorted(quoted) if find_spec(name) is None]


def test_links_paths_and_anchors_are_recognised() -> None:
    assert "docs/operations.md" in set(_links(Path("README.md")))
    assert PATH.findall("see `docs/lab.md`, or run lab/bare-machine.") == [
        "docs/lab.md",
        "lab/bare-machine",
    ]
    assert TEST.findall("`cpumanager/test_pool.py` and `test_a_case`") == [
        "test_pool.py",
        "test_a_case",
    ]
    assert _anchors("## How it works (v1)\n") == {"how-it-works-v1"}


def _links(page: Path) -> Iterator[str]:
    for target in LINK.findall((TOP / page).read_text()):
        if "://" not in target:
            yield target


def _anchors(text: str) -> set[str]:
    """The anchors that GitHub gives the titles of a page."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("plural", ["nodeassignments", "nodereports"])
def test_the_readme_shows_the_columns_of_kubectl_get(plural: str) -> None:
    crd = yaml.safe_load((TOP / f"charts/numapin/crd-files/numapin.io_{plural}.yaml").read_text())
    version = crd["spec"]["versions"][0]
    columns = [one for one in version["additionalPrinterColumns"] if not one.get("priority")]
    titles = ["NAME", *(one["name"].upper() for one in columns)]
    shown = (TOP / "README.md").read_text().partition(f"$ kubectl get {plural}\n")[2]
    header, row = (re.split(r" {2,}", line) for line in shown.splitlines()[:2])
    assert header == titles
    assert len(row) == len(titles)


def test_the_readme_shows_what_plan_prints_of_the_examples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = {"id": 0, "memoryBytes": 19 << 29, "hugepages": {}, "distances": [10]}
    machine = {"cpus": [[0, 0, 0, 0, 0], [1, 1, 0, 0, 0]], "numaNodes": [memory], "pci": []}
    (tmp_path / "two-cpus.json").write_text(json.dumps(machine))
    command = "plan -f examples/policy.yaml -f examples/pods.yaml"
    files = [str(TOP / word) if "/" in word else word for word in command.split()]
    assert main([*files, "--machine", str(tmp_path / "two-cpus.json")]) == 0
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    shown = (TOP / "README.md").read_text().partition(f"$ numapin {command}\n")[2]
    lines = [line.rstrip() for line in shown.partition("\n```")[0].splitlines()]
    assert [line for line in lines if line] == [line for line in printed if line]
