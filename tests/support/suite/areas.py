"""The pytest plugin that measures each test and prints the table of times at the end of a run."""

import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest

from support.suite.times import FILE, Key, Row, slow, table, write

CAMPAIGNS: Final = ("test_chaos.py", "test_resize_steps.py", "test_move_steps.py", "histories")
"""Tests that let chance, or a list of all cases, choose what happens."""


def area(item: pytest.Item) -> str:
    """The area of a test, by where it is and how numapin runs in it."""
    path = item.nodeid.partition("::")[0]
    if any(one in path for one in CAMPAIGNS):
        return "campaigns"
    if item.get_closest_marker("vm"):
        return "virtual machines"
    if path.startswith("tests/e2e/"):
        return f"end to end, as {'pods' if has_pods(item) else 'processes'}"
    if path.startswith("tests/integration/"):
        return "integration"
    known = path.startswith(("tests/scenarios/", "tests/conformance/"))
    return "scenarios and conformance" if known else "unit"


def has_pods(item: pytest.Item) -> bool:
    """Whether numapin runs as pods in a test (tests/e2e/conftest.py)."""
    spec = getattr(item, "callspec", None)
    chosen = spec is not None and spec.params.get("numapin") == "pods"
    return chosen or "installed_as_pods" in getattr(item, "fixturenames", ())


def _cpu_seconds() -> float:
    """CPU time of this process and of its children that have ended and were waited for."""
    return sum(os.times()[:4])


class Areas:
    """Adds up what each test takes."""

    def __init__(self) -> None:
        self.rows: dict[Key, Row] = {}
        self._setup_seconds, self._skipped = 0.0, False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Measure all of a test, with the fixtures that begin and end with it."""
        self._setup_seconds, self._skipped = 0.0, False
        began, used = time.monotonic(), _cpu_seconds()
        result = yield
        taken = Row(
            tests=int(not self._skipped),
            skipped=int(self._skipped),
            seconds=time.monotonic() - began,
            setup_seconds=self._setup_seconds,
            cpu_seconds=_cpu_seconds() - used,
        )
        key = area(item), item.nodeid.partition("::")[0]
        self.rows[key] = self.rows.get(key, Row()) + taken
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what fixtures took, and a skip."""
        if report.when != "call":
            self._setup_seconds += report.duration
        self._skipped |= report.skipped and not hasattr(report, "wasxfail")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table, or leave the rows to who started this and others."""
        if FILE in os.environ:
            write(Path(os.environ[FILE]), self.rows)
        elif self.rows:
            terminalreporter.section("times by area")
            for line in (*table(self.rows), *slow(self.rows)):
                terminalreporter.write_line(line)
