"""A chaos run from its first pod to its report: `python -m numapin_lab chaos`."""

import pickle
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from numapin_api.cpuset import CpuSet
from numapin_lab.chaos.execution import Driver, carry_out
from numapin_lab.chaos.injection.cpuset_overwrites import Overwriter
from numapin_lab.chaos.injection.kills import Killer
from numapin_lab.chaos.observation import final_checks
from numapin_lab.chaos.observation.cluster_state import ClusterState, open_files
from numapin_lab.chaos.observation.logs import Log, complaints, taken, warnings
from numapin_lab.chaos.observation.samples import Samples
from numapin_lab.chaos.observation.verdict import Evidence, judge
from numapin_lab.chaos.plan import ChaosPlan
from numapin_lab.chaos.pods import resident
from numapin_lab.chaos.report import Report
from numapin_lab.components.build import Say
from numapin_lab.errors import LabError
from numapin_lab.running_lab import RunningLab, policy

POLICY: Final = "chaos"
RESIDENTS: Final[Mapping[str, Mapping[str, str]]] = {
    "resident-best-effort": {},
    "resident-burstable": {"memory": "16Mi"},
}
SAMPLER_SECONDS: Final = 300
FENCED: Final = "numapin_enforcer.standby.fencing: fenced "


@dataclass(frozen=True)
class Before:
    """What was there before the first pod: cpusets before the policy, files, ends of logs."""

    cpusets: Mapping[str, CpuSet]
    files: tuple[int, int]
    logs: Mapping[str, Log]


@dataclass(frozen=True)
class Done:
    """What was done and is left to be judged. `files` are the enforcer's afterwards."""

    driver: Driver
    killer: Killer
    overwriter: Overwriter
    problems: list[str]
    files: tuple[int, int]
    seconds: float


def run(lab: RunningLab, plan: ChaosPlan, output: Path, tell: Say) -> Report:
    """Carry a plan out on a lab with nothing on it.

    Args:
        lab: a running lab with nothing on it.
        plan: what to do.
        output: a folder for what the sampler writes.
        tell: takes a line of progress now and then.

    Raises:
        LabError: a part did not come back, or pods got stuck.
    """
    before = _prepare(lab)
    overwriter = Overwriter(lab, Killer(lab))
    with _sampling(lab, overwriter, output) as sampler, ClusterState(lab) as view:
        done = _act(Driver(lab, view, plan, tell), overwriter)
    samples = _taken_out(sampler)
    given_back = final_checks.given_back(lab, POLICY, before.cpusets)
    return _report(before, done, samples, given_back)


def _act(driver: Driver, overwriter: Overwriter) -> Done:
    """All that happens, until everything has settled."""
    began, lab = time.monotonic(), driver.lab
    carry_out(driver, overwriter.killer, overwriter)
    overwriter.join()
    driver.tell("chaos: every pod has come and gone; waiting for everything to settle")
    problems = final_checks.converged(lab, RESIDENTS)
    seconds = time.monotonic() - began
    files = _enforcer_files(lab)
    return Done(driver, overwriter.killer, overwriter, problems, files, seconds)


def _report(before: Before, done: Done, samples: Samples, given_back: Sequence[str]) -> Report:
    lines = {name: list(log.lines()) for name, log in before.logs.items()}
    made, versions = done.overwriter.made, samples.versions
    downtimes = done.killer.downtimes.completed
    evidence = Evidence(made, downtimes, taken(lines["enforcer"]), versions)
    logged = final_checks.complaints(complaints(each, downtimes) for each in lines.values())
    return Report(
        plan=done.driver.plan,
        samples=samples,
        verdict=judge(samples.moments, evidence),
        overwrites=made,
        downtimes=downtimes,
        kills=done.killer.downtimes.kills,
        ends=done.driver.ends,
        memory=done.driver.view.memory,
        drift_count=versions[-1].drifts - versions[0].drifts,
        files=(before.files, done.files),
        problems=[*done.problems, *logged, *given_back],
        fenced=sum(FENCED in line.text for line in lines["standby"]),
        warnings={f"{name} {text}": n for name in lines for text, n in warnings(lines[name])},
        seconds=done.seconds,
    )


def _taken_out(file: Path) -> Samples:
    samples: Samples = pickle.loads(file.read_bytes())
    file.unlink()
    return samples


def _prepare(lab: RunningLab) -> Before:
    """Residents first, so that there is something to be given back; then the policy."""
    pods: list[dict[str, Any]] = [resident(name, asked) for name, asked in RESIDENTS.items()]
    lab.apply(*pods)
    lab.wait_running(*RESIDENTS)
    cpusets = lab.cpusets()
    lab.apply(policy(POLICY))
    lab.wait_settled()
    folders = {name: lab.agent(name).folder for name in ("operator", "enforcer")}
    folders["standby"] = lab.cluster.standby.folder
    logs = {name: Log(folder / "log") for name, folder in folders.items()}
    return Before(cpusets, _enforcer_files(lab), logs)


def _enforcer_files(lab: RunningLab) -> tuple[int, int]:
    pid = lab.agent("enforcer").daemon.pid()
    if pid is None:
        raise LabError("the enforcer does not run")
    return open_files(pid)


@contextmanager
def _sampling(lab: RunningLab, overwriter: Overwriter, output: Path) -> Iterator[Path]:
    """The sampler runs in here; what it saw is in the file afterwards."""
    file = output / "samples.pickle"
    command = [
        sys.executable,
        "-m",
        "numapin_lab.chaos.observation.sampler",
        f"--kubepods={lab.kubepods}",
        f"--bundles={overwriter.bundles}",
        f"--kubeconfig={lab.cluster.plane.kubeconfig}",
        f"--node={lab.node}",
        f"--output={file}",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as sampler:
        try:
            _wait_for_first_line(sampler)
            yield file
        finally:
            sampler.send_signal(signal.SIGTERM)
            status = sampler.wait(timeout=SAMPLER_SECONDS)
    if status != 0:
        raise LabError(f"the sampler ended with status {status}")


def _wait_for_first_line(sampler: subprocess.Popen[bytes]) -> None:
    """Return when the sampler says that it has seen the NodeAssignment.

    Raises:
        LabError: it ended, or said nothing for `SAMPLER_SECONDS`.
    """
    assert sampler.stdout is not None
    readable, _, _ = select.select([sampler.stdout], [], [], SAMPLER_SECONDS)
    if not readable or not sampler.stdout.readline():
        raise LabError(f"the sampler has not seen the NodeAssignment in {SAMPLER_SECONDS} s")
