"""From another commit to this one and back, part by part, while a pod has an exclusive CPU.

    python -m numapin_campaigns.upgrade --from REF [--seconds 3]

REF is a tag or a commit of this repository. Its programs are installed in a virtual environment of
their own, and start as the operator, enforcer and standby of a lab with the real kubelet. Then CRDs
and programs are replaced, one after the other, in four orders: operator first and back with the
enforcer first, CRDs and enforcer first and back with the operator first. After each step the
container must still be reported exclusive, and all the time, about each millisecond, the kernel
must show it and its neighbour on their own CPUs.

The exit status is 1 after a sample that shows anything else.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from numapin_campaigns.recording.recording import Recording, recording
from numapin_lab.lifecycle import LabFolder
from numapin_lab.node import agents
from numapin_lab.processes.daemons import stop
from numapin_lab.running_lab import BUSY, RunningLab, eventually, pod, policy

ROOT = Path(__file__).parents[2]
WANTED = {"owner": "1", "neighbour": "0"}
STOP_SECONDS = 30.0
ORDERS = (
    ("to this commit, operator first", True, ("operator", "crds", "standby", "enforcer")),
    ("back, enforcer first", False, ("enforcer", "standby", "operator", "crds")),
    ("to this commit, CRDs and enforcer first", True, ("crds", "enforcer", "standby", "operator")),
    ("back, operator first", False, ("operator", "enforcer", "standby", "crds")),
)


@dataclass(frozen=True)
class Release:
    """The sources of one commit, and a Python that has its programs."""

    name: str
    sources: Path
    python: str

    def known(self, module: str, options: tuple[str, ...]) -> tuple[str, ...]:
        """The options that its program has: this commit's lab may set newer ones."""
        help_text = subprocess.check_output([self.python, "-m", module, "--help"], text=True)
        names = {word.strip("[],") for word in help_text.split()}
        return tuple(one for one in options if one.partition("=")[0] in names)


@contextmanager
def other_release(reference: str, folder: Path) -> Iterator[Release]:
    """Another commit, checked out and installed in `folder` for the duration of the context."""
    sources, environment = folder / "sources", folder / "venv"
    git = ("git", "-C", str(ROOT))
    subprocess.run([*git, "worktree", "add", "--quiet", "--detach", sources, reference], check=True)
    try:
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        python = environment / "bin" / "python"
        extras = f"{sources}[operator,enforcer]"
        options = ("--quiet", "--disable-pip-version-check", "--editable")
        subprocess.run([python, "-m", "pip", "install", *options, extras], check=True)
        yield Release(reference, sources, str(python))
    finally:
        subprocess.run([*git, "worktree", "remove", "--force", sources], check=False)


@dataclass(frozen=True)
class Upgrade:
    """A lab whose parts are replaced; `seconds` is how long each replacement is watched."""

    lab: RunningLab
    seconds: float

    def replace(self, part: str, release: Release) -> None:
        """Replace one part, and wait until all is reported as it was."""
        if part == "crds":
            folder = str(release.sources / "crds")
            self.lab.kubectl("apply", "--server-side", "--force-conflicts", "-k", folder)
        elif part == "standby":
            if (pid := self.lab.cluster.standby.pid()) is not None:
                stop(pid, STOP_SECONDS)
            agents.standby(self.lab.cluster.kubelet, release.python).start()
        else:
            agent = self.lab.agent(part)
            options = release.known(f"numapin_{part}", agent.options)
            agent = replace(agent, python=release.python, options=options)
            agent.stop()
            agent.start()
            agent.wait_ready()
        time.sleep(self.seconds)
        eventually(self.is_reported, True)
        print(f"  {part}: {release.name}", flush=True)

    def is_reported(self) -> bool:
        """Whether the newest assignment is in force, with the exclusive container."""
        assignment = self.lab.assignment()
        if assignment is None or assignment.status is None:
            return False
        is_newest = assignment.status.observed_generation == assignment.metadata["generation"]
        ready = {one.type: one.status for one in assignment.status.conditions}.get("Ready")
        given = [(str(one.cpus), one.exclusive) for one in assignment.status.containers]
        return is_newest and ready == "True" and given == [(WANTED["owner"], True)]


def run(older: Release, newer: Release, folder: LabFolder, seconds: float) -> Recording:
    """All orders in one lab, which is taken down at the end."""
    try:
        lab = RunningLab(folder.up())
        upgrade = Upgrade(lab, seconds)
        lab.apply(policy(), pod("owner", cpu="1"), pod("neighbour", BUSY))
        lab.wait_running(*WANTED)
        eventually(lambda: {name: str(lab.allowed(name)) for name in WANTED}, WANTED)
        print("all parts", flush=True)
        for part in ("crds", "operator", "standby", "enforcer"):
            upgrade.replace(part, older)
        containers = {name: lab.container_id(name) for name in WANTED}
        with recording(lab.kubepods) as found:
            for title, is_newer, parts in ORDERS:
                print(title, flush=True)
                for part in parts:
                    upgrade.replace(part, newer if is_newer else older)
        found.groups = {name: found.groups[one] for name, one in containers.items()}
        return found
    finally:
        folder.down()


def main() -> int:
    """Parse the command line, run, and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--from", dest="reference", required=True, help="a tag or a commit")
    parser.add_argument("--seconds", type=float, default=3.0, help="to watch after each step (3)")
    options = parser.parse_args()
    newer = Release("this commit", ROOT, sys.executable)
    with tempfile.TemporaryDirectory(prefix="numapin-upgrade-") as name:
        folder = Path(name)
        with other_release(options.reference, folder) as older:
            found = run(older, newer, LabFolder(folder / "lab"), options.seconds)
    violations = [
        f"{name} had {one.cpus}"
        for name, changes in found.groups.items()
        for one in changes
        if str(one.cpus) != WANTED[name]
    ]
    longest = round(1000 * found.quality["longestGapSeconds"])
    print(f"samples: {found.quality['samples']}, at most {longest} ms apart")
    print(f"violations: {len(violations)}", *violations[:5])
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
