"""`make test` runs tests in virtual machines beside all others, and once more if they fail."""

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
case "$*" in *--last-failed*) exit {again};; esac
case $last in vm) exit {machines};; *) {others};; esac
"""


def fake(folder: Path, machines: int, others: str, again: int = 0) -> Path:
    path = folder / "fake-pytest"
    path.write_text(FAKE.format(machines=machines, others=others, again=again))
    path.chmod(0o755)
    return path


CACHE = "-o cache_dir=.pytest_cache/vm"
MACHINES, AGAIN = f"--durations=3 {CACHE} -m vm", f"--durations=3 {CACHE} --last-failed -m vm"


@pytest.mark.parametrize(
    ("machines", "again", "others", "status"),
    [(0, 0, 0, 0), (0, 0, 1, 1), (1, 0, 0, 0), (1, 1, 0, 1), (1, 0, 2, 2), (2, 0, 0, 2)],
)
def test_both_parts_run_and_a_failure_in_a_machine_is_run_again(
    tmp_path: Path, machines: int, again: int, others: int, status: int
) -> None:
    program = fake(tmp_path, machines, f"exit {others}", again)
    command: list[str | Path] = [RUN_TESTS, program, "--durations=3"]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    assert done.returncode == status
    parts = [line.split(" ", 1)[1] for line in done.stdout.splitlines() if line.startswith("ran ")]
    assert parts == ["--durations=3 -m not vm", MACHINES, *([AGAIN] if machines == 1 else [])]


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
