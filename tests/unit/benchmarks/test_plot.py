"""Drawing the pictures of the measurements."""

import subprocess
import sys
from pathlib import Path

PLOT = Path(__file__).parents[3] / "benchmarks" / "enforcing" / "plot.py"


def test_without_matplotlib_it_says_what_to_install() -> None:
    """Isolated and without site-packages, Python finds no matplotlib."""
    ended = subprocess.run(
        [sys.executable, "-I", "-S", str(PLOT), "--help"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 1
    assert ended.stderr == "No module named 'matplotlib': pip install 'numapin[bench]'\n"
