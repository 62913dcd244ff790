"""`make test` runs the tests in virtual machines beside all others; each failure counts."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

RUN_TESTS = Path(__file__).parents[3] / "lab" / "run-tests"
FAKE = """#!/bin/sh
# In place of pytest: the last argument selects the tests.
for last; do :; done
echo "ran $*"
: >"$0 $last"
case $last in vm) exit {vm};; *) {others};; esac
"""


def fake(folder: Path, vm: int, others: str) -> Path:
    path = folder / "fake-pytest"
    path.write_text(FAKE.format(vm=vm, others=others))
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(("vm", "others"), [(0, 0), (1, 0), (0, 1), (2, 2)])
def test_both_parts_run_and_each_failure_counts(tmp_path: Path, vm: int, others: int) -> None:
    command: list[str | Path] = [RUN_TESTS, fake(tmp_path, vm, f"exit {others}"), "--durations=3"]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    assert done.returncode == max(vm, others)
    parts = [line.split(" ", 1)[1] for line in done.stdout.splitlines() if line.startswith("ran ")]
    assert parts == ["--durations=3 -m not vm", "--durations=3 -m vm"]


def test_a_signal_to_the_group_ends_both_parts(tmp_path: Path) -> None:
    """As Ctrl-C in a terminal does. A shell ignores the signal if its parent does."""
    program = fake(tmp_path, 0, "exec sleep 1000")
    started = [Path(f"{program} {selected}") for selected in ("vm", "not vm")]
    command: list[str | Path] = ["env", "--default-signal=INT", RUN_TESTS, program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        while not all(path.exists() for path in started):
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"-m vm" in output
