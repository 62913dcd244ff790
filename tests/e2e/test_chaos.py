"""Each part is killed while pods start and end, and no exclusive CPU is ever shared."""

import secrets
from pathlib import Path

import pytest

from numapin_lab.chaos.command import write
from numapin_lab.chaos.plan import make_plan
from numapin_lab.chaos.report import Report, summary
from numapin_lab.chaos.run import run
from numapin_lab.components.build import say
from numapin_lab.running_lab import RunningLab

PODS = 70
"""At least one fault of each kind; `make chaos` starts 200."""

PARTS = {"enforcer", "standby", "operator", "kube-apiserver", "containerd", "kubelet"}


@pytest.mark.timeout(3600)  # three minutes on an idle machine
def test_no_exclusive_cpu_is_ever_shared_and_no_pin_is_lost(
    lab: RunningLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = make_plan(secrets.randbelow(1_000_000), PODS)
    with capsys.disabled():
        say(f"\nchaos: python -m numapin_lab chaos --seed {plan.seed} --pods {PODS}")
        report = run(lab, plan, tmp_path, say)
        write(report, tmp_path / "chaos.json")
        say(summary(report))
    _was_chaos(report)
    assert report.verdict.violations == ()
    assert report.unreverted == []
    assert report.problems == []
    assert report.memory["enforcer"][-1].mib < 60


def _was_chaos(report: Report) -> None:
    """A run in which little happened proves little."""
    assert report.pods_run >= PODS
    assert report.pods_ended >= PODS
    assert report.kills.keys() == PARTS
    assert report.exclusive_reported >= PODS // 10
    assert report.samples.with_exclusive > 5_000
    assert report.injected.keys() == {
        "FillStateFolder",
        "ReadOnlyStateFolder",
        "Nested",
        "IrrelevantWrites",
    }
    assert report.noticed_seconds
    assert None not in report.noticed_seconds
    assert len(report.reverts) >= 5
    # One is counted for what is found in one look, be it a container with all that is above it.
    assert len(report.reverts) // 3 <= report.drift_count <= len(report.overwrites)
