"""Each part is killed while pods start and end, and no exclusive CPU is ever shared."""

import secrets
import urllib.request
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


def series(lab: RunningLab) -> dict[str, int]:
    """How many series the metrics of each daemon have."""
    found = {}
    for name in ("operator", "enforcer"):
        url = f"http://127.0.0.1:{lab.agent(name).port}/metrics"
        with urllib.request.urlopen(url, timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        found[name] = sum(not line.startswith("#") for line in lines)
    return found


@pytest.mark.from_source("`chaos --installed` is that, and takes longer (docs/lab.md)")
@pytest.mark.timeout(3600)  # three minutes on an idle machine
def test_no_exclusive_cpu_is_ever_shared_and_no_pin_is_lost(
    lab: RunningLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = make_plan(secrets.randbelow(1_000_000), PODS)
    with capsys.disabled():
        say(f"\nchaos: python -m numapin_lab chaos --seed {plan.seed} --pods {PODS}")
        before = series(lab)
        report = run(lab, plan, tmp_path, say)
        after = series(lab)
        write(report, tmp_path / "chaos.json")
        say(summary(report))
        say(f"chaos: series of metrics before {before}, after {after}")
    _was_chaos(report)
    assert report.verdict.violations == ()
    assert report.unreverted == []
    assert report.problems == []
    assert report.memory["enforcer"][-1].mib < 60
    # The policy adds some, and so does each thing that happens for the first time; no pod does.
    assert all(after[name] - before[name] < PODS // 2 for name in before), (before, after)


def _was_chaos(report: Report) -> None:
    """A run in which little happened proves little."""
    assert report.pods_run >= PODS
    assert report.pods_ended >= PODS
    assert report.kills.keys() == PARTS
    assert report.resizes["Taken"] >= 4
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
    # With a resize the runtime repeats what it has; an enforcer that was killed may not know it.
    most = len(report.overwrites) + report.resizes["Taken"]
    assert len(report.reverts) // 3 <= report.drift_count <= most
