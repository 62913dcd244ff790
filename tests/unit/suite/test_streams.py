"""`make test` runs several pytests side by side, shows all of them, and ends with one table."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from support.suite import streams
from support.suite.times import FILE

BUILDER = ("sleep", "1000")
FAKE = """
import os, sys, time
from pathlib import Path
last = sys.argv[-1]
name = next(one for one in sys.argv if one.startswith("cache_dir=")).rpartition("/")[2]
print("ran", name, *sys.argv[1:2], flush=True)
Path(__file__).with_name(name).touch()
with open(os.environ["NUMAPIN_TEST_TIMES"], "a") as times:
    times.write('{"area": "unit", "module": "%s", "tests": 2, "seconds": 1.0}\\n' % name)
time.sleep({sleep})
sys.exit({statuses}.get(name, 0))
"""


def fake(folder: Path, statuses: dict[str, int], sleep: float = 0) -> list[str]:
    """In place of pytest."""
    script = folder / "fake.py"
    script.write_text(FAKE.replace("{sleep}", str(sleep)).replace("{statuses}", repr(statuses)))
    return [sys.executable, str(script), "--first"]


@pytest.mark.parametrize("failed", [{}, {"labs": 1}, {"machines": 1}, {"rest": 2}], ids=str)
def test_all_streams_run_and_any_failure_is_in_the_status(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    failed: dict[str, int],
) -> None:
    monkeypatch.setattr(streams, "TIMES", tmp_path / "cache" / "times")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert streams.main(fake(tmp_path, failed), BUILDER) == max(failed.values(), default=0)
    said = capfd.readouterr().out
    assert len(list(tmp_path.glob("np-*"))) == bool(failed), "kept to look at after a failure"
    for name in streams.STREAMS:
        assert f"ran {name} --first" in said
        assert f"== {name}: {'FAILED' if name in failed else 'passed'} after" in said
    assert f"| all | {2 * len(streams.STREAMS)} | 0 | {len(streams.STREAMS)} | 0 | 0 |" in said


def test_a_signal_ends_all_streams_and_what_they_printed_is_shown(tmp_path: Path) -> None:
    """As Ctrl-C in a terminal does."""
    script = f"""
import sys
from pathlib import Path
from support.suite import streams
streams.TIMES = Path({str(tmp_path)!r}) / "times"
sys.exit(streams.main({fake(tmp_path, {}, sleep=1000)!r}, {BUILDER!r}))
"""
    folders = {"PYTHONPATH": str(streams.ROOT / "tests"), "TMPDIR": str(tmp_path)}
    environment = {**os.environ, **folders}
    environment.pop(FILE, None)
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    ) as process:
        while not all((tmp_path / name).exists() for name in streams.STREAMS):
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == streams.INTERRUPTED
    assert all(f"ran {name}".encode() in output for name in streams.STREAMS)
