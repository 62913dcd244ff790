"""Every program that the lab, the tests and the benchmarks start has a package to come from."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeGuard

from numapin_cli.main import SUBCOMMANDS
from numapin_lab.bare.commands import ENTER
from numapin_lab.components.catalog import COMPONENTS
from numapin_lab.node.isolated_machine import FUNCTIONS, JOIN
from numapin_lab.node.mount_namespace import SCRIPT
from numapin_lab.node.pod_network import CNI_PLUGIN

ROOT = Path(__file__).parents[3]
INSTALLER = ROOT / "lab" / "system-packages"
SOURCES = ("lab/numapin_lab", "campaigns", "tests", "benchmarks")
STARTERS = {"Popen", "_run", "call", "check_call", "check_output", "run", "which"}
"""Functions whose first argument is a program, or a command line that begins with one."""
OURS = {one.name for one in SUBCOMMANDS}
ELSEWHERE = {*COMPONENTS, *OURS, "echo", "go", "lstopo-no-graphics", "pytest"}
"""The lab builds these itself, shells have echo built in, Go is the user's, pytest is in .venv, and
a benchmark compares with hwloc if it is there."""
SHELL = re.compile(
    "case|cd|continue|cover|do|done|echo|elif|else|esac|exec|fi|for|if|read|set|shift|then|trap|while"
)
"""What a shell does itself, and the function of a script."""


def provided() -> set[str]:
    """The programs that the installer sees to."""
    found = re.search(r"<<'TABLE'\n(.*?)\nTABLE\n", INSTALLER.read_text(), re.DOTALL)
    assert found is not None
    return {program for line in found[1].splitlines() for program in line.split()[1:]}


def started(module: ast.Module) -> Iterator[tuple[str, int]]:
    """The programs that a module starts and whose name stands in it, each with its line.

    Seen are calls of `STARTERS`, and command lines whose second word is an option.
    """
    constants = {
        target.id: node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call) and node.args]
    words = [one.args[0] for one in calls if _name(one.func) in STARTERS]
    others = [one.args[0] for one in calls]  # the arguments of our own command, of kubectl
    words += [one for one in ast.walk(module) if _has_option(one) and one not in others]
    for one in words:
        if program := _first_word(one, constants):
            yield program, one.lineno


def _name(function: ast.expr) -> str:
    return str(getattr(function, "id", getattr(function, "attr", "")))


def _first_word(value: ast.expr, constants: Mapping[str, ast.expr]) -> str:
    if isinstance(value, ast.Name) and value.id in constants:
        value = constants[value.id]
    if isinstance(value, ast.List | ast.Tuple) and value.elts:
        value = value.elts[0]
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value.split(maxsplit=1)[0] if value.value.strip() else ""
    return ""


def _has_option(words: ast.AST) -> TypeGuard[ast.expr]:
    if not isinstance(words, ast.List | ast.Tuple) or len(words.elts) < 2:
        return False
    second = words.elts[1]
    if isinstance(second, ast.JoinedStr) and second.values:
        second = second.values[0]
    option = isinstance(second, ast.Constant) and re.match("--?[a-z]", str(second.value))
    return bool(option) and re.fullmatch(r"[a-z][\w.-]*", _first_word(words, {})) is not None


def test_every_program_that_is_started_has_a_package() -> None:
    known = provided() | ELSEWHERE
    missing = [
        f"{path.relative_to(ROOT)}:{line}: {program}"
        for folder in SOURCES
        for path in sorted((ROOT / folder).rglob("*.py"))
        for program, line in started(ast.parse(path.read_text()))
        if program not in known
    ]
    assert missing == []


def test_every_program_of_the_lab_s_scripts_has_a_package() -> None:
    found = set()
    for line in (SCRIPT + JOIN + FUNCTIONS + CNI_PLUGIN + ENTER).splitlines():
        for command in re.split(r";|&&|\|\|?|\bthen\b|\bdo\b|\belse\b|\bif\b", line):
            found |= set(re.findall(r"^\s*([a-z][\w.-]*)(?=\s|$)", command))
    assert {"cp", "find", "mkdir", "mount", "pivot_root"} <= found
    assert {word for word in found - provided() if not SHELL.fullmatch(word)} == set()
