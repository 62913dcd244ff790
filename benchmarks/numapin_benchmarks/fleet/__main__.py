"""Seconds and memory of commands on a cluster of many nodes, whose API server is played.

    python -m numapin_benchmarks.fleet [--nodes N] [--pods P]

Each command is a process of its own. Printed are its exit status, the seconds from its start to its
end, most of which is the played server making objects, and the most memory that it had.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from numapin_benchmarks.surroundings import load, progress

EDIT: Final = {
    "apiVersion": "numapin.io/v1beta1",
    "kind": "CpuPolicy",
    "metadata": {"name": "fast"},
    "spec": {"reserved": {"cpus": "0-1,32-33"}, "options": {"fullPCPUsOnly": True}},
}
COMMANDS: Final = (
    "get --summary",
    "get",
    "status",
    "explain node/worker-00017",
    "plan --live -f {edit} -o diff",
)


def main() -> None:
    """Serve, run each command, then print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=30, help="of each node")
    options = parser.parse_args()
    counts = ["--nodes", str(options.nodes), "--pods", str(options.pods)]
    server = [sys.executable, "-m", "numapin_benchmarks.fleet.server", *counts]
    rows = []
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            server, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as served,
    ):
        try:
            assert served.stdout is not None
            found = next(one for line in served.stdout if (one := re.search(r"http://\S+", line)))
            files = write_files(Path(folder), found[0])
            for command in COMMANDS:
                progress(f"{command}, load {load()}")
                rows.append(f"{command:32} {_measured(command.format(**files), files)}")
        finally:
            served.terminate()
    print("\n".join(rows))


def write_files(folder: Path, server: str) -> dict[str, str]:
    """The files that the commands are given."""
    context = {"cluster": "it", "user": ""}
    kubeconfig = {
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": server.strip("/")}}],
        "contexts": [{"name": "it", "context": context}],
    }
    (folder / "kubeconfig").write_text(json.dumps(kubeconfig))
    (folder / "edit.json").write_text(json.dumps(EDIT))
    return {"kubeconfig": str(folder / "kubeconfig"), "edit": str(folder / "edit.json")}


def _measured(command: str, files: dict[str, str]) -> str:
    arguments = ["-m", "numapin_cli.main", *command.split(), "--kubeconfig", files["kubeconfig"]]
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    code = os.waitstatus_to_exitcode(status)
    return f"status {code}  {seconds:7.1f} s  {used.ru_maxrss / 1024:6.0f} MiB"


if __name__ == "__main__":
    main()
