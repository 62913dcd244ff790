"""The example program in C, built as its first lines say."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

from numapin_campaigns.workload.notice import CPUS_FOLDER, with_cpus_file, with_volume
from numapin_lab.running_lab import pod

SOURCE = Path(__file__).parents[4] / "examples" / "poll_mode.c"
WARNINGS = ("-std=c11", "-Wall", "-Wextra", "-Werror")
PROGRAM = "poll-mode"
"""Also the name of the ConfigMap by which it comes into a container."""
FOLDER = "/opt/numapin"
IDLE_MICROSECONDS = "1000"
RUN = (f"{FOLDER}/{PROGRAM}", f"{CPUS_FOLDER}/cpus", "main", IDLE_MICROSECONDS)
"""The command of a container `main`; it leaves time for others on machines with few CPUs."""


def build_poll_mode(folder: Path) -> Path:
    """Build the program, static, so that it runs in any container."""
    command = re.search(r"Build it with: (gcc .*)", SOURCE.read_text())
    assert command is not None
    words = (*shlex.split(command[1]), *WARNINGS)
    words = tuple(str(SOURCE) if word == SOURCE.name else word for word in words)
    subprocess.run(words, cwd=folder, check=True)
    return (folder / "poll_mode").rename(folder / PROGRAM)


def poll_mode_pod(name: str, cpu: str) -> dict[str, Any]:
    """A pod that runs the program in its container `main`: there must be a ConfigMap with it."""
    manifest = with_cpus_file(pod(name, RUN, cpu=cpu))
    source = {"configMap": {"name": PROGRAM, "defaultMode": 0o555}}
    return with_volume(manifest, "program", source, FOLDER)
