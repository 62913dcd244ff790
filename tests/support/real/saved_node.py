"""Programs in a virtual machine that follow a saved assignment: no API server, no runtime."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from numapin_enforcer.assignment.copy_file import CopyFile

CGROUPS = Path("/sys/fs/cgroup")
PATIENCE_SECONDS = 180.0
IDS = (f"{number:064x}" for number in count(1))
KUBECONFIG = {
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
}


def make(path: str) -> Path:
    """Make a cgroup with cpusets."""
    folder = CGROUPS / path
    folder.parent.joinpath("cgroup.subtree_control").write_text("+cpuset")
    folder.mkdir()
    return folder


def until(holds: Callable[[], object], what: str) -> None:
    """Wait until it holds; it fails after `PATIENCE_SECONDS`."""
    end_seconds = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end_seconds, f"waited {PATIENCE_SECONDS:g} s in vain: {what}"
        time.sleep(0.005)


@dataclass
class SavedNode:
    """Our programs in the cgroup `ours`; what they know and write is in `folder`."""

    folder: Path
    ours: Path
    started: list[subprocess.Popen[bytes]] = field(default_factory=list, kw_only=True)

    def save(self, spec: Mapping[str, Any], generation: int = 1) -> None:
        """Save the assignment that they follow."""
        (self.folder / "kubeconfig").write_text(json.dumps(KUBECONFIG))
        saved = {"node": "guest", "uid": "u", "generation": generation, "spec": spec}
        CopyFile(self.folder / "state", "guest").write(saved)

    def spawn(self, cgroup: Path, *command: str, log: str = "others") -> subprocess.Popen[bytes]:
        """Start a program in a cgroup."""
        enter = ["sh", "-c", 'echo $$ > "$0"/cgroup.procs; exec "$@"', str(cgroup)]
        with (self.folder / log).open("ab") as file:
            self.started.append(subprocess.Popen([*enter, *command], stdout=file, stderr=file))
        return self.started[-1]

    def launch(self, log: str, module: str, *more: str) -> subprocess.Popen[bytes]:
        """Start one of our programs."""
        folders = [
            f"--{name}-dir={self.folder / name}" for name in ("state", "run", "kubelet-state")
        ]
        command = [sys.executable, "-m", module, "--node-name=guest", *folders, *more]
        return self.spawn(self.ours, *command, log=log)

    def enforcer(self, *more: str) -> subprocess.Popen[bytes]:
        """Start the enforcer."""
        options = (f"--kubeconfig={self.folder / 'kubeconfig'}", "--cri-socket=/run/none.sock")
        return self.launch("enforcer", "numapin_enforcer", *options, *more)

    def log(self, name: str) -> str:
        """What a program has logged."""
        return (self.folder / name).read_text()

    def end(self) -> None:
        """End everything that was started."""
        for process in self.started:
            process.kill()
            process.wait()
