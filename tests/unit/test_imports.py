"""What does no I/O: whole packages by the import contracts, single modules by what they say."""

import ast
import importlib.util
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
(PURE_PACKAGES,) = (one for one in LINTER["contracts"] if one["name"].endswith("do no I/O"))
FORBIDDEN = frozenset(PURE_PACKAGES["forbidden_modules"])
EXEMPT = frozenset(line.split(" -> ")[0] for line in PURE_PACKAGES.get("ignore_imports", ()))
MARK = "Does no I/O."
"""The last words of the docstring of a module that does none, in a room where others do."""


PRODUCT = ("crds", "daemon", "client", "operator", "enforcer", "cli", "page")
PACKAGES = (*PRODUCT, "lab", "campaigns", "benchmarks")
TOPS = (*PACKAGES, "tests")
MOST_MODULES = dict.fromkeys(TOPS, 14) | dict.fromkeys(PRODUCT, 9)
"""More in one folder are a drawer: make a room of those that belong together."""

UNCOUNTED = ("__init__.py", "__main__.py")


@cache
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*LINTER["root_packages"], include_external_packages=True)


def modules() -> Iterator[str]:
    return (
        name for name in sorted(graph().modules) if name.partition(".")[0].startswith("numapin")
    )


def is_marked(module: str) -> bool:
    found = importlib.util.find_spec(module)
    assert found is not None
    assert found.origin is not None
    docstring = ast.get_docstring(ast.parse(Path(found.origin).read_text()))
    return docstring is not None and docstring.endswith(MARK)


def pure_modules() -> list[str]:
    packages = PURE_PACKAGES["source_modules"]
    whole = {
        name
        for name in modules()
        if any(name == package or name.startswith(f"{package}.") for package in packages)
    }
    return sorted((whole - EXEMPT) | {name for name in modules() if is_marked(name)})


def io_reached(module: str, seen: grimp.ImportGraph) -> set[str]:
    """The forbidden modules that `module` imports, itself or through others of ours."""
    return {name for name in FORBIDDEN & seen.modules if seen.chain_exists(module, name)}


@pytest.mark.parametrize("module", pure_modules())
def test_it_does_no_io(module: str) -> None:
    assert io_reached(module, graph()) == set()


GO_BETWEEN = "numapin_daemon.flowcontrol.backoff"


@pytest.fixture(scope="module")
def changed() -> grimp.ImportGraph:
    """The imports, if a module that does no I/O imported `os`."""
    found = grimp.build_graph(*LINTER["root_packages"], include_external_packages=True)
    found.add_import(importer=GO_BETWEEN, imported="os")
    return found


@pytest.mark.parametrize("module", pure_modules())
def test_a_forbidden_import_is_caught(module: str, changed: grimp.ImportGraph) -> None:
    """Also when it is imported through another module of ours."""
    is_there = changed.direct_import_exists(importer=module, imported=GO_BETWEEN)
    changed.add_import(importer=module, imported=GO_BETWEEN)
    assert "os" in io_reached(module, changed)
    if not is_there:
        changed.remove_import(importer=module, imported=GO_BETWEEN)


def test_what_does_no_io_says_so() -> None:
    """So that I/O is not added to a decision unnoticed; packages' own `__init__` are empty."""
    silent = {
        name
        for name in modules()
        if name.startswith(("numapin_enforcer.", "numapin_operator."))
        and not graph().find_children(name)
        and not name.startswith("numapin_enforcer.runtime.generated")
        and not io_reached(name, graph())
    }
    assert silent <= set(pure_modules())


@pytest.mark.parametrize("top", TOPS)
def test_no_folder_is_a_drawer(top: str) -> None:
    listed = [one for one in (ROOT / top).rglob("*.py") if one.name not in UNCOUNTED]
    folders = Counter(str(one.parent) for one in listed)
    assert folders
    assert {name: count for name, count in folders.items() if count > MOST_MODULES[top]} == {}
