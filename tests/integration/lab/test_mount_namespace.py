"""The lab's mount namespace can be made within any other, as in a machine of `lab/bare-machine`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CREATE = """
import os, sys
from pathlib import Path
from numapin_lab.node.mount_namespace import MountNamespace
os.sched_setaffinity(0, {int(sys.argv[2])})
os.sched_setaffinity(0, set(map(int, sys.argv[3].split(","))))
made = MountNamespace(Path(sys.argv[1]))
made.create()
assert made.file.stat().st_dev != made.run.stat().st_dev
"""


@pytest.mark.parametrize("outer", sorted(os.sched_getaffinity(0)))
@pytest.mark.parametrize("inner", sorted(os.sched_getaffinity(0)))
def test_it_is_made_within_a_namespace_of_any_cpu(tmp_path: Path, outer: int, inner: int) -> None:
    """The kernel takes a namespace's number from a range of the CPU that makes it."""
    cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    command = [sys.executable, "-c", CREATE, str(tmp_path), str(inner), cpus]
    made = subprocess.run(
        ["taskset", "--cpu-list", str(outer), "unshare", "--mount", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
