"""`make test` runs tests two at a time, and those in virtual machines again if they fail."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

RUN_TESTS = Path(__file__).parents[3] / "lab" / "run-tests"
FAKE = """#!/bin/sh
# In place of pytest: the arguments select the tests.
echo "ran $*"
case "$*" in
  *--last-failed*) exit {again} ;;
  *"-m vm") : >"$0 machines"; exit {machines} ;;
  *--ignore=tests/unit) : >"$0 others"; {others} ;;
  *tests/unit) exit {unit} ;;
  *) exit 99 ;;
esac
"""


def fake(folder: Path, others: str, machines: int = 0, again: int = 0, unit: int = 0) -> Path:
    path = folder / "fake-pytest"
    path.write_text(FAKE.format(others=others, machines=machines, again=again, unit=unit))
    path.chmod(0o755)
    return path


OTHERS = "--durations=3 -m not vm --ignore=tests/unit"
CACHE = "--durations=3 -o cache_dir=.pytest_cache"
MACHINES, AGAIN = f"{CACHE}/vm -m vm", f"{CACHE}/vm --last-failed -m vm"
UNIT = f"{CACHE}/unit tests/unit"


@pytest.mark.parametrize(
    ("exits", "status"),
    [
        ((0, 0, 0, 0), 0),
        ((0, 0, 0, 1), 1),
        ((1, 0, 0, 0), 0),
        ((1, 1, 0, 0), 1),
        ((1, 0, 0, 2), 2),
        ((2, 0, 0, 0), 2),
        ((0, 0, 1, 0), 1),
        ((1, 1, 2, 0), 2),
    ],
)
def test_all_parts_run_and_a_failure_in_a_machine_is_run_again(
    tmp_path: Path, exits: tuple[int, int, int, int], status: int
) -> None:
    """`exits`: of the machines, once and again, of the unit tests, and of all others."""
    machines, again, unit, others = exits
    program = fake(tmp_path, f"exit {others}", machines, again, unit)
    command: list[str | Path] = [RUN_TESTS, program, "--durations=3"]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    assert done.returncode == status
    parts = [line.split(" ", 1)[1] for line in done.stdout.splitlines() if line.startswith("ran ")]
    assert parts == [OTHERS, MACHINES, *([AGAIN] if machines == 1 else []), UNIT]


def test_a_signal_to_the_group_ends_both_parts(tmp_path: Path) -> None:
    """As Ctrl-C in a terminal does. A shell ignores the signal if its parent does."""
    program = fake(tmp_path, "exec sleep 1000")
    started = [Path(f"{program} {part}") for part in ("machines", "others")]
    command: list[str | Path] = ["env", "--default-signal=INT", RUN_TESTS, program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        while not all(path.exists() for path in started):
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"-m vm" in output
