"""Drawing the pictures of the measurements."""

import os
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def test_without_matplotlib_it_says_what_to_install() -> None:
    """Without site-packages, Python finds no matplotlib."""
    ended = subprocess.run(
        [sys.executable, "-S", "-m", "numapin_benchmarks.enforcing.plot", "--help"],
        env={**os.environ, "PYTHONPATH": str(BENCHMARKS)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 1
    assert ended.stderr == "No module named 'matplotlib': pip install 'numapin[bench]'\n"
