"""A virtual machine that stands still is replaced by a new one, once for a test, and loudly.

What a test finds itself is never tried again. A machine that stands still is killed, so that all
that waits for it ends; then the fixtures of the test are torn down, and it runs in another one.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import pytest
from _pytest.runner import runtestprotocol

from numapin_lab.components.build import say
from numapin_lab.errors import LabError
from numapin_lab.lifecycle import LabFolder
from numapin_lab.vm.pulse import BETWEEN_SECONDS, Pulse


class StillMachines:
    """Notes machines that stood still, and runs the tests again that they ended."""

    NAME: Final = "still machines"

    def __init__(self) -> None:
        self._problem = ""
        self._replaced: list[str] = []

    @contextmanager
    def watched(self, folder: LabFolder) -> Iterator[None]:
        """Watch the machine of a lab, whenever it has one."""
        ended = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(folder, ended), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()

    def _watch(self, folder: LabFolder, ended: threading.Event) -> None:
        while not ended.is_set():
            with suppress(LabError, OSError, ValueError):  # it is down, or on its way
                self._problem = Pulse(folder.guest()).watch(ended) or self._problem
            ended.wait(BETWEEN_SECONDS)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> object:
        """Run a test on a lab in a machine, and once more if the machine stood still."""
        if "vm_lab" not in getattr(item, "fixturenames", ()):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        self._problem = ""
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if self._problem and any(one.failed for one in reports):
            self._replaced.append(f"{item.nodeid}: {self._problem}")
            say(f"\nA VIRTUAL MACHINE STOOD STILL and is replaced: {self._replaced[-1]}")
            with suppress(LabError, AssertionError):
                item.session._setupstate.teardown_exact(None)
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say which were replaced."""
        for one in self._replaced:
            terminalreporter.write_line(f"VIRTUAL MACHINE REPLACED: {one}", yellow=True)
