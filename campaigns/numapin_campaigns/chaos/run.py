"""A chaos run, from its first pod to its report."""

import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from numapin_api.cpuset import CpuSet
from numapin_campaigns.chaos.execution import Driver, execute
from numapin_campaigns.chaos.plan import (
    DISK_FAULTS,
    KILLS,
    OVERWRITES,
    TENANT_FAULTS,
    ChaosPlan,
    Fault,
)
from numapin_campaigns.chaos.pods import resident
from numapin_campaigns.chaos.report import Report
from numapin_campaigns.faults.cpuset_overwrites import Overwriter
from numapin_campaigns.faults.crowd import Crowd
from numapin_campaigns.faults.hostile_cgroups import Tenant
from numapin_campaigns.faults.injector import Injector
from numapin_campaigns.faults.kills import Killer
from numapin_campaigns.faults.programs import io_tenants
from numapin_campaigns.faults.state_folder import StateFolder
from numapin_campaigns.observation import final_checks
from numapin_campaigns.observation.cluster_state import ClusterState, open_files
from numapin_campaigns.observation.logs import (
    complaints,
    fenced,
    hangs_noticed,
    taken,
    warnings,
)
from numapin_campaigns.observation.samples import Samples
from numapin_campaigns.observation.verdict import Evidence, judge, noticed_after, unnoticed
from numapin_campaigns.parts.installation import LogLines, Parts, SourceParts
from numapin_campaigns.parts.pods import PodParts
from numapin_lab.components.build import Say
from numapin_lab.errors import LabError
from numapin_lab.installed.running import InstalledLab
from numapin_lab.running_lab import RunningLab, policy

POLICY: Final = "chaos"
RESIDENTS: Final[Mapping[str, Mapping[str, str]]] = {
    "resident-best-effort": {},
    "resident-burstable": {"memory": "16Mi"},
}
TENANT: Final = "resident-burstable"
"""The pod in whose container a tenant's programs run."""

SAMPLER_SECONDS: Final = 300


@dataclass(frozen=True)
class Before:
    """The state before the first pod.

    It holds the cpusets before the policy, the enforcer's open files and whether it has real-time
    priority, and the ends of logs.
    """

    cpusets: Mapping[str, CpuSet]
    files: tuple[int, int]
    realtime: bool
    logs: Mapping[str, LogLines]


@dataclass(frozen=True)
class Executed:
    """What was executed. `files` are the open files of the enforcer afterwards.

    `injected` counts the faults of disk and tenant. `crowded`: when there was a crowd of cgroups.
    """

    driver: Driver
    killer: Killer
    overwriter: Overwriter
    injected: Counter[str]
    crowded: Sequence[tuple[float, float]]
    problems: list[str]
    files: tuple[int, int]
    seconds: float


def run(
    lab: RunningLab, plan: ChaosPlan, output: Path, progress: Say, rest_seconds: float = 0.0
) -> Report:
    """Execute a plan on a lab with nothing on it.

    Args:
        lab: a running lab with nothing on it.
        plan: what to do.
        output: a folder for what the sampler writes.
        progress: takes a line now and then.
        rest_seconds: at least so long is between two samples. Without a rest the sampler takes
            nearly one CPU.

    Raises:
        LabError: a part did not become ready again, or no pod made progress.
    """
    with parts_of(lab) as parts:
        with parts.state_folder() as state_folder:
            before = _prepare(lab, parts)
            overwriter = Overwriter(lab, Killer(lab, parts))
            with (
                _sampling(lab, overwriter, output, rest_seconds) as sampler,
                ClusterState(lab, parts.daemons) as cluster_state,
            ):
                driver = Driver(lab, cluster_state, plan, progress)
                executed = _execute(driver, overwriter, state_folder, parts)
            samples = _read_and_remove(sampler)
            not_restored = final_checks.check_restored(lab, POLICY, before.cpusets)
        return _report(before, executed, samples, not_restored)


@contextmanager
def parts_of(lab: RunningLab) -> Iterator[Parts]:
    """Operator, enforcer and standby, whichever way they run."""
    if isinstance(lab, InstalledLab):
        with PodParts(lab) as parts:
            yield parts
    else:
        yield SourceParts(lab)


def _execute(
    driver: Driver, overwriter: Overwriter, state_folder: StateFolder, parts: Parts
) -> Executed:
    """Execute the plan, and wait for the end state."""
    began, lab = time.monotonic(), driver.lab
    crowd = Crowd(lab, overwriter.bundles, driver.plan.crowd)
    injected = _inject(driver, overwriter, state_folder, crowd, _has_realtime(_enforcer(parts)))
    driver.progress("chaos: every pod has ended; waiting for the end state")
    problems = final_checks.check_end_state(lab, RESIDENTS)
    seconds = time.monotonic() - began
    files = _enforcer_files(parts)
    made = (overwriter.killer, overwriter, injected, crowd.times)
    return Executed(driver, *made, problems, files, seconds)


def _inject(
    driver: Driver, overwriter: Overwriter, state_folder: StateFolder, crowd: Crowd, realtime: bool
) -> Counter[str]:
    """Execute the plan; returns what was done besides kills and overwrites."""
    lab, plan, kill = driver.lab, driver.plan, overwriter.killer.inject
    shared = lab.container(TENANT)
    tenant = Tenant(lab.kubepods, shared if realtime else None)
    count = plan.count(Fault.IO_URING)
    with (
        tempfile.TemporaryDirectory() as folder,
        io_tenants(lab, shared, Path(folder), count, kill) as io_uring,
    ):
        injectors = [
            Injector(KILLS, kill),
            Injector(OVERWRITES, overwriter.inject),
            Injector(TENANT_FAULTS, tenant.inject),
            Injector(DISK_FAULTS, state_folder.inject),
            Injector({Fault.IO_URING}, io_uring.inject),
            Injector({Fault.CROWD}, crowd.inject),
        ]
        execute(driver, injectors, overwriter.killer.downtimes)
        overwriter.join()
    return tenant.made + state_folder.made + io_uring.made + crowd.made


def _report(
    before: Before, executed: Executed, samples: Samples, not_restored: Sequence[str]
) -> Report:
    lines = {name: list(log.lines()) for name, log in before.logs.items()}
    made, versions = executed.overwriter.made, samples.versions
    downtimes = executed.killer.downtimes.completed
    noticed = hangs_noticed(lines["standby"])
    known = taken(lines["enforcer"]), versions, noticed, before.realtime, executed.crowded
    evidence = Evidence(made, downtimes, *known)
    noticed_seconds = noticed_after(downtimes, noticed)
    logged = final_checks.complaints(complaints(each, downtimes) for each in lines.values())
    return Report(
        plan=executed.driver.plan,
        samples=samples,
        verdict=judge(samples.anomalies, evidence),
        overwrites=made,
        downtimes=downtimes,
        kills=executed.killer.downtimes.kills,
        ends=executed.driver.ends,
        resizes=executed.driver.resizes,
        memory=executed.driver.cluster_state.memory,
        drift_count=versions[-1].drift_count - versions[0].drift_count,
        files=(before.files, executed.files),
        problems=[*executed.problems, *logged, *unnoticed(noticed_seconds), *not_restored],
        fenced=fenced(lines["standby"]),
        injected=executed.injected,
        realtime=before.realtime,
        noticed_seconds=noticed_seconds,
        warnings={f"{name} {text}": n for name in lines for text, n in warnings(lines[name])},
        seconds=executed.seconds,
    )


def _read_and_remove(file: Path) -> Samples:
    samples: Samples = pickle.loads(file.read_bytes())
    file.unlink()
    return samples


def _prepare(lab: RunningLab, parts: Parts) -> Before:
    """Start the resident pods, so that there are cpusets to restore; then apply the policy."""
    pods: list[dict[str, Any]] = [resident(name, asked) for name, asked in RESIDENTS.items()]
    lab.apply(*pods)
    lab.wait_running(*RESIDENTS)
    cpusets = lab.cpusets()
    lab.apply(policy(POLICY))
    lab.wait_in_force()
    logs = {name: parts.log(name) for name in ("operator", "enforcer", "standby")}
    return Before(cpusets, _enforcer_files(parts), _has_realtime(_enforcer(parts)), logs)


def _enforcer_files(parts: Parts) -> tuple[int, int]:
    return open_files(_enforcer(parts))


def _has_realtime(pid: int) -> bool:
    policy = os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK
    return policy in {os.SCHED_RR, os.SCHED_FIFO}


def _enforcer(parts: Parts) -> int:
    pid = parts.daemons["enforcer"].pid()
    if pid is None:
        raise LabError("the enforcer does not run")
    return pid


@contextmanager
def _sampling(
    lab: RunningLab, overwriter: Overwriter, output: Path, rest_seconds: float
) -> Iterator[Path]:
    """Run the sampler meanwhile; afterwards its samples are in the file."""
    file = output / "samples.pickle"
    command = [
        sys.executable,
        "-m",
        "numapin_campaigns.observation.sampler",
        f"--kubepods={lab.kubepods}",
        f"--bundles={overwriter.bundles}",
        f"--kubeconfig={lab.cluster.plane.kubeconfig}",
        f"--node={lab.node}",
        f"--output={file}",
        f"--rest-seconds={rest_seconds}",
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
