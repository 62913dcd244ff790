"""Tests that `make test` leaves out: marked `run_by`, with who runs them and whether it does.

They are deselected, not skipped: a skip means that a machine cannot run what it must, and is a
failure in CI.
"""

import os
from collections import Counter
from typing import Final

import pytest

from numapin_lab.components.catalog import CHOSEN_KUBERNETES

BEFORE_RELEASE: Final = "NUMAPIN_TEST_BEFORE_RELEASE"
before_release = pytest.mark.run_by("make before-release", BEFORE_RELEASE in os.environ)
"""For tests that take minutes, where another test shows nearly the same sooner."""


def rounds(usual: int, *, before_release: int) -> int:
    """How often to repeat what may fail by chance: `before_release` times then, else `usual`."""
    return before_release if BEFORE_RELEASE in os.environ else usual


def since_kubernetes(release: str) -> pytest.MarkDecorator:
    """For tests of what older API servers do not serve; `release` is "1.34", say."""
    chosen = [int(part) for part in CHOSEN_KUBERNETES.split(".") if part]
    is_served = not chosen or chosen >= [int(part) for part in release.split(".")]
    return pytest.mark.run_by(f"make test with Kubernetes {release} or newer", is_served)


class LeftOut:
    """Deselects them, and prints at the end who runs them."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.skipped: list[str] = []

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Keep the tests whose `run_by` marks are all true."""
        left_out = {item: who for item in items if (who := _left_to(item))}
        self.counts.update(left_out.values())
        if left_out:
            config.hook.pytest_deselected(items=list(left_out))
            items[:] = [item for item in items if item not in left_out]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a skip."""
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skipped.append(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """In CI a skip is a failure."""
        if self.skipped and "CI" in os.environ and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was left out."""
        for who, count in sorted(self.counts.items()):
            terminalreporter.write_line(f"left out: {count} tests, which {who} runs")
        if self.skipped and "CI" in os.environ:
            terminalreporter.write_line(f"SKIPPED IN CI: {', '.join(self.skipped)}", red=True)


def _left_to(item: pytest.Item) -> str:
    """Who runs a test instead; empty if it runs now."""
    for mark in item.iter_markers("run_by"):
        who, now = mark.args
        if not now:
            return str(who)
    return ""
