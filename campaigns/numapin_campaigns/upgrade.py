"""From another commit to this one and back, part by part, while a pod has an exclusive CPU.

The programs of a tag or commit of this repository are installed in a virtual environment of their
own, and start as the operator, enforcer and standby of a lab with the real kubelet. Then CRDs and
programs are replaced, one after the other, in four orders: CRDs first and back with them last,
and between them either the operator or the enforcer first. Before programs go back, the operator
writes the form of 0.1. After each step the container must still be reported exclusive, and all the
time, about each millisecond, the kernel must show it and its neighbour on their own CPUs.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from numapin_api import names
from numapin_api.forms.spec import has_lines
from numapin_api.nodeassignment import NodeAssignment
from numapin_campaigns.frame.command import Campaign, add_keep
from numapin_campaigns.frame.judge import Verdict
from numapin_campaigns.frame.labs import lab_on_this_machine
from numapin_campaigns.frame.plain import PlainReport
from numapin_campaigns.recording.recording import Change, Recording, recording
from numapin_client.resources import NODE_ASSIGNMENTS, NODE_REPORTS, NODE_TOPOLOGIES, Key
from numapin_lab.components.build import Say
from numapin_lab.controlplane.node_objects import read_node
from numapin_lab.images.build import CHECKOUT
from numapin_lab.node import agents
from numapin_lab.processes.daemons import stop
from numapin_lab.running_lab import BUSY, RunningLab, eventually, pod, policy

WANTED: Final = {"owner": "1", "neighbour": "0"}
STOP_SECONDS: Final = 30.0
OLD_FORM: Final = "form of 0.1"
"""The operator of this commit writes what programs of 0.1 read (docs/upgrading.md)."""

ORDERS: Final = (
    ("to this commit, operator first", True, ("crds", "operator", "standby", "enforcer")),
    ("back, enforcer first", False, (OLD_FORM, "enforcer", "standby", "operator", "crds")),
    ("to this commit, enforcer first", True, ("crds", "enforcer", "standby", "operator")),
    ("back, operator first", False, (OLD_FORM, "operator", "enforcer", "standby", "crds")),
)


@dataclass(frozen=True)
class UpgradePlan:
    """The other commit, and for how long each replacement is watched."""

    reference: str
    seconds: float


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this campaign."""
    add_keep(parser)
    parser.add_argument("--from", dest="reference", required=True, help="a tag or a commit")
    parser.add_argument("--seconds", type=float, default=3.0, help="to watch after each step (3)")


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
    git = ("git", "-C", str(CHECKOUT))
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
    progress: Say

    def replace(self, part: str, release: Release) -> None:
        """Replace one part, and wait until all is reported as it was."""
        if part == "crds":
            folder = str(release.sources / "crds")
            self.lab.kubectl("apply", "--server-side", "--force-conflicts", "-k", folder)
        elif part == OLD_FORM:
            self._write_old_form()
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
        self.progress(f"upgrade:   {part}: {release.name}")

    def _write_old_form(self) -> None:
        """Have the operator write the form of 0.1; returns when nothing is left of the newer."""
        agent = self.lab.agent("operator")
        agent = replace(agent, options=(*agent.options, "--assignment-form=v1alpha1"))
        agent.stop()
        agent.start()
        agent.wait_ready()
        self.lab.wait(self._has_old_form, "the form of 0.1 to be written")

    def _has_old_form(self) -> bool:
        api, key = self.lab.cluster.api, Key(self.lab.node)
        parts = (NODE_REPORTS.path(key), NODE_TOPOLOGIES.path(key))
        spec = api.get(NODE_ASSIGNMENTS.path(key))["spec"]
        return not has_lines(spec) and not any(map(api.exists, parts))

    def is_reported(self) -> bool:
        """Whether the newest assignment is in force, with the exclusive container."""
        # By the version that the CRDs of both releases serve.
        found = read_node(self.lab.cluster.api, self.lab.node, names.ALPHA)
        assignment = NodeAssignment.model_validate(found) if found else None
        if assignment is None or assignment.status is None:
            return False
        is_newest = assignment.status.observed_generation == assignment.metadata["generation"]
        ready = {one.type: one.status for one in assignment.status.conditions}.get("Ready")
        given = [(str(one.cpus), one.exclusive) for one in assignment.status.containers]
        return is_newest and ready == "True" and given == [(WANTED["owner"], True)]

    def all_orders(self, older: Release, newer: Release) -> Recording:
        """Start with the older release, then replace all parts in each order."""
        for part in (OLD_FORM, "operator", "standby", "enforcer", "crds"):
            self.replace(part, older)
        with recording(self.lab.kubepods) as found:
            for title, is_newer, parts in ORDERS:
                self.progress(f"upgrade: {title}")
                for part in parts:
                    is_new = is_newer or part == OLD_FORM
                    self.replace(part, newer if is_new else older)
        return found


def _run(lab: RunningLab, plan: UpgradePlan, _: Path, progress: Say) -> PlainReport:
    began, newer = time.monotonic(), Release("this commit", CHECKOUT, sys.executable)
    with (
        tempfile.TemporaryDirectory(prefix="numapin-upgrade-") as folder,
        other_release(plan.reference, Path(folder)) as older,
    ):
        lab.apply(policy(), pod("owner", cpu="1"), pod("neighbour", BUSY))
        lab.wait_running(*WANTED)
        eventually(lambda: {name: str(lab.allowed(name)) for name in WANTED}, WANTED)
        found = Upgrade(lab, plan.seconds, progress).all_orders(older, newer)
    seen = {name: found.groups[lab.container_id(name)] for name in WANTED}
    return PlainReport(
        seed=0,
        verdict=Verdict(tuple(violations(seen))),
        seconds=time.monotonic() - began,
        own=dict(found.quality),
    )


def violations(seen: Mapping[str, Sequence[Change]]) -> Iterator[Mapping[str, Any]]:
    """When a container had other CPUs than its own."""
    for name, changes in seen.items():
        for one in changes:
            if str(one.cpus) != WANTED[name]:
                yield {"container": name, "had": str(one.cpus), "at": round(one.at, 3)}


UPGRADE: Final = Campaign(
    "upgrade",
    lambda _, options: UpgradePlan(options.reference, options.seconds),
    lambda plan: f"--from {plan.reference} --seconds {plan.seconds}",
    lab_on_this_machine,
    _run,
)
