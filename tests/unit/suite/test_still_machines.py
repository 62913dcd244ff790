"""A test whose machine stood still runs again in another one; one that just fails does not."""

import os
import subprocess
import sys
from pathlib import Path

from support.suite.streams import ROOT
from support.suite.times import FILE

CONFTEST = """
import pytest
from support.suite.areas import Areas
from support.suite.left_out import LeftOut
from support.suite.still_machines import StillMachines

made = []

def pytest_configure(config):
    config.pluginmanager.register(StillMachines(), StillMachines.NAME)
    config.pluginmanager.register(Areas())
    config.pluginmanager.register(LeftOut())
    config.addinivalue_line("markers", "run_by(who, now)")

@pytest.fixture(scope="module")
def vm_lab():
    made.append(len(made) + 1)
    return made[-1]

@pytest.fixture
def stands_still(request):
    plugin = request.config.pluginmanager.getplugin(StillMachines.NAME)
    return lambda: setattr(plugin, "_problem", "CPU3 had no timer interrupt for 45 s")
"""
TESTS = """
import pytest

tries = []

def test_before(vm_lab):
    assert vm_lab == 1

def test_on_a_machine_that_stands_still(vm_lab, stands_still):
    if vm_lab == 1:
        stands_still()
        raise AssertionError("waited in vain")
    assert vm_lab == 2

def test_on_the_new_one(vm_lab):
    assert vm_lab == 2

def test_with_a_fault_of_its_own(vm_lab):
    tries.append(vm_lab)
    assert len(tries) > 1

def test_that_is_skipped():
    pytest.skip("for no reason")

@pytest.mark.run_by("make steps", False)
def test_of_steps():
    raise AssertionError
"""


def run(folder: Path, *options: str, **variables: str) -> tuple[int, str]:
    """The exit status of a pytest with these plug-ins, and what it prints."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\n")
    ours = {"CI", "PYTEST_ADDOPTS", FILE}
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--color=no", *options, folder],
        env={**kept, "PYTHONPATH": str(ROOT / "tests"), **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout


def test_only_what_a_machine_spoiled_runs_again(tmp_path: Path) -> None:
    status, said = run(tmp_path)
    assert status == 1
    assert "1 failed, 3 passed, 1 skipped, 1 deselected" in said
    assert "FAILED test_it.py::test_with_a_fault_of_its_own" in said
    spoiled = "test_on_a_machine_that_stands_still: CPU3 had no timer interrupt for 45 s"
    assert f"VIRTUAL MACHINE REPLACED: test_it.py::{spoiled}" in said
    assert "left out: 1 tests, which make steps runs" in said
    assert "| all | 4 | 1 |" in said


def test_a_skip_is_a_failure_in_ci(tmp_path: Path) -> None:
    chosen = ("-k", "skipped")
    assert run(tmp_path, *chosen)[0] == 0
    status, said = run(tmp_path, *chosen, CI="true")
    assert status == 1
    assert "SKIPPED IN CI: test_it.py::test_that_is_skipped" in said
