"""Each part is killed while pods start and end, and no exclusive CPU is ever shared."""

import secrets
from pathlib import Path

import pytest

from numapin_campaigns.chaos.plan import make_plan
from numapin_campaigns.chaos.report import PodsReport
from numapin_campaigns.chaos.run import installation_of, run
from numapin_campaigns.frame.command import write
from numapin_lab.components.build import say
from numapin_lab.running_lab import RunningLab
from support.real.io_threads import why_without
from support.suite.left_out import before_release

PODS = 30
"""Enough for one fault of each kind and some resizes; `make chaos` starts 200."""

REST_SECONDS = 0.004
"""Between two samples: otherwise the sampler takes the CPU that the virtual machines leave.
`make chaos` has no such rest."""

GROWTH = 26
"""So many new series of metrics are too many: nearly one for each pod."""

PARTS = {"enforcer", "standby", "operator", "kube-apiserver", "containerd", "kubelet"}


def series(lab: RunningLab) -> dict[str, int]:
    """How many series the metrics of each daemon have."""
    found = {}
    with installation_of(lab) as installed:
        for name in ("operator", "enforcer"):
            lines = installed.page(name, "metrics").decode().splitlines()
            found[name] = sum(not line.startswith("#") for line in lines)
    assert all(found.values()), found
    return found


def _run(lab: RunningLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> PodsReport:
    """Nothing is shared, nothing is lost, and nothing grows."""
    plan = make_plan(secrets.randbelow(1_000_000), PODS)
    with capsys.disabled():
        say(f"\nchaos: python -m numapin_campaigns chaos --seed {plan.seed} --pods {PODS}")
        before = series(lab)
        report = run(lab, plan, tmp_path, say, REST_SECONDS)
        after = series(lab)
        write(report, tmp_path / "chaos.json")
        say(report.summary())
        say(f"chaos: series of metrics before {before}, after {after}")
    _was_chaos(report)
    assert report.verdict.violations == ()
    assert report.unreverted == []
    assert report.problems == []
    assert report.memory["enforcer"][-1].mib < 60
    # The policy adds some, and so does each thing that happens for the first time; no pod does.
    assert all(after[name] - before[name] < GROWTH for name in before), (before, after)
    return report


@before_release
@pytest.mark.timeout(3600)  # three minutes on an idle machine
def test_no_exclusive_cpu_is_ever_shared_and_no_pin_is_lost(
    lab: RunningLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(lab, tmp_path, capsys)


@pytest.mark.from_source(
    "on cgroup v1 a pod gets no real-time priority, and what that costs is excused"
)
@pytest.mark.timeout(3600)  # one and a half on an idle machine
def test_with_real_time_priority_no_new_cgroup_waits_for_it(
    lab: RunningLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = _run(lab, tmp_path, capsys)
    assert report.realtime


def _was_chaos(report: PodsReport) -> None:
    """A run in which little happened proves little."""
    assert report.pods_run >= PODS
    assert report.pods_ended >= PODS
    assert report.kills.keys() == PARTS
    assert report.resizes["Taken"] >= 2
    # Of about twelve. What else the machine does decides how long each is seen, and how often.
    assert len(report.samples.exclusive_seen) >= 3
    injected = {"FillStateFolder", "ReadOnlyStateFolder", "Nested", "IrrelevantWrites"}
    injected |= {"CrowdedCgroups", "FifoHogs"} if report.realtime else {"CrowdedCgroups"}
    io_uring = {"IoUringRefused"} if why_without() else {"IoWorkers"}
    assert report.injected.keys() - {"IoWorkersNamed", "CrowdLeftOut"} == injected | io_uring
    assert report.noticed_seconds
    assert None not in report.noticed_seconds
    # How many are reverted before the spec asks for the same, or the pod ends, is left to chance.
    assert len(report.overwrites) >= 3
    # One is counted for what is found in one look, be it a container with all that is above it.
    # With a resize the runtime repeats what it has; an enforcer that was killed may not know it.
    # So does what the standby writes for up to a second beside an enforcer that was stopped.
    most = len(report.overwrites) + report.resizes["Taken"] + report.fenced
    assert len(report.reverts) // 3 <= report.drift_count <= most
