"""A chaos run, from its first pod to its report."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from numapin_api.cpuset import CpuSet
from numapin_campaigns.chaos import final_checks
from numapin_campaigns.chaos.cluster_state import ClusterState, open_files
from numapin_campaigns.chaos.execution import Driver, Injector, execute
from numapin_campaigns.chaos.plan import ChaosPlan
from numapin_campaigns.chaos.pods import resident
from numapin_campaigns.chaos.report import PodsReport
from numapin_campaigns.chaos.verdict import Evidence, judge
from numapin_campaigns.faults.registry import KINDS
from numapin_campaigns.faults.target import Target
from numapin_campaigns.frame.downtime import noticed_after, unnoticed
from numapin_campaigns.parts.installation import FromSource, Installation, parts_of
from numapin_campaigns.parts.logs import (
    LogLines,
    complaints,
    fenced,
    hangs_noticed,
    taken,
    warnings,
)
from numapin_campaigns.parts.part import AGENTS, ENFORCER, STANDBY
from numapin_campaigns.parts.pods import AsPods
from numapin_campaigns.sampling.process import read_and_remove, sampling
from numapin_campaigns.sampling.samples import Samples
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
    """What was executed. `files` are the open files of the enforcer afterwards."""

    driver: Driver
    target: Target
    problems: list[str]
    files: tuple[int, int]
    seconds: float


def run(
    lab: RunningLab, plan: ChaosPlan, output: Path, progress: Say, rest_seconds: float = 0.0
) -> PodsReport:
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
    with installation_of(lab) as installed:
        with installed.state_folder() as state_folder:
            before = _prepare(lab, installed)
            parts = parts_of(lab, installed)
            target = Target(lab, installed, parts, state_folder, plan.faults, plan.crowd)
            target.tenant = lab.container(TENANT)
            target.hogged = target.tenant if before.realtime else None
            with (
                sampling(lab, target.bundles, output, rest_seconds) as sampler,
                ClusterState(lab, installed.daemons) as cluster_state,
            ):
                executed = _execute(Driver(lab, cluster_state, plan, progress), target)
            samples = read_and_remove(sampler)
            not_restored = final_checks.check_restored(lab, POLICY, before.cpusets)
        return _report(before, executed, samples, not_restored)


@contextmanager
def installation_of(lab: RunningLab) -> Iterator[Installation]:
    """Operator, enforcer and standby, whichever way they run."""
    if isinstance(lab, InstalledLab):
        with AsPods(lab) as pods:
            yield pods
    else:
        yield FromSource(lab)


def _execute(driver: Driver, target: Target) -> Executed:
    """Execute the plan, and wait for the end state."""
    began = time.monotonic()
    with ExitStack() as stack:
        injectors = [
            Injector(kind.FAULTS, stack.enter_context(kind.injector(target))) for kind in KINDS
        ]
        execute(driver, injectors, target.parts)
    driver.progress("chaos: every pod has ended; waiting for the end state")
    problems = final_checks.check_end_state(driver.lab, RESIDENTS)
    seconds = time.monotonic() - began
    return Executed(driver, target, problems, open_files(_enforcer(target.installation)), seconds)


def _report(
    before: Before, executed: Executed, samples: Samples, not_restored: Sequence[str]
) -> PodsReport:
    target, driver = executed.target, executed.driver
    lines = {name: list(log.lines()) for name, log in before.logs.items()}
    versions, downtimes = samples.versions, target.parts.downtimes
    noticed = hangs_noticed(lines[STANDBY])
    known = taken(lines[ENFORCER]), versions, noticed, before.realtime, target.crowded
    noticed_seconds = noticed_after(downtimes, noticed)
    logged = [f"logged: {one}" for each in lines.values() for one in complaints(each, downtimes)]
    return PodsReport(
        seed=driver.plan.seed,
        plan=driver.plan,
        samples=samples,
        verdict=judge(samples.anomalies, Evidence(target.overwrites, downtimes, *known)),
        overwrites=target.overwrites,
        downtimes=downtimes,
        kills=target.parts.kills,
        ends=driver.ends,
        resizes=driver.resizes,
        memory=driver.cluster_state.memory,
        drift_count=versions[-1].drift_count - versions[0].drift_count,
        files=(before.files, executed.files),
        problems=[*executed.problems, *logged, *unnoticed(noticed_seconds), *not_restored],
        fenced=fenced(lines[STANDBY]),
        injected=target.made,
        realtime=before.realtime,
        noticed_seconds=noticed_seconds,
        warnings={f"{name} {text}": n for name in lines for text, n in warnings(lines[name])},
        seconds=executed.seconds,
    )


def _prepare(lab: RunningLab, installed: Installation) -> Before:
    """Start the resident pods, so that there are cpusets to restore; then apply the policy."""
    pods: list[dict[str, Any]] = [resident(name, asked) for name, asked in RESIDENTS.items()]
    lab.apply(*pods)
    lab.wait_running(*RESIDENTS)
    cpusets = lab.cpusets()
    lab.apply(policy(POLICY))
    lab.wait_in_force()
    logs = {name: installed.log(name) for name in AGENTS}
    enforcer = _enforcer(installed)
    return Before(cpusets, open_files(enforcer), _has_realtime(enforcer), logs)


def _has_realtime(pid: int) -> bool:
    policy = os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK
    return policy in {os.SCHED_RR, os.SCHED_FIFO}


def _enforcer(installed: Installation) -> int:
    pid = installed.daemons[ENFORCER].pid()
    if pid is None:
        raise LabError("the enforcer does not run")
    return pid
