"""The operator as a process, and how its answers and its log are waited for."""

import asyncio
import os
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.real.waiting import PATIENCE_SECONDS, eventually

HASTY = Path(__file__).with_name("hasty_operator.py")


class OperatorProcess:
    """`python -m numapin_operator`, logged in as the operator's service account.

    A hasty one has shorter waits; see support.real.operators.hasty_operator.
    """

    def __init__(self, kubeconfig: Path, folder: Path, *, hasty: bool = False) -> None:
        self.kubeconfig, self.log = kubeconfig, folder / "operator.log"
        self._program = (str(HASTY),) if hasty else ("-m", "numapin_operator")
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    async def start(self, *options: str) -> None:
        """Start it, and wait until it says that it has listed everything."""
        with self.log.open("ab") as log:
            seen = self.log.stat().st_size
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *self._program,
                f"--kubeconfig={self.kubeconfig}",
                "--no-leader-elect",
                "--health-address=127.0.0.1:0",
                *options,
                stdout=log,
                stderr=log,
                env={**os.environ, "KUBECONFIG": ""},
            )
        await until(lambda: "listed everything" in self.log.read_text()[seen:], self.log)

    async def kill(self) -> None:
        """End it at once, whatever it is doing."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> int:
        """End it as a pod is ended; its exit status."""
        return await self._end(signal.SIGTERM)

    async def _end(self, number: signal.Signals) -> int:
        if self._process is None:
            return 0
        process, self._process = self._process, None
        if process.returncode is None:
            process.send_signal(number)
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await process.wait()


async def probe(url: str) -> tuple[int, str]:
    """The status and the text of a page, whatever the status is."""

    def ask() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(url) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()

    return await asyncio.to_thread(ask)


async def until(holds: Callable[[], Any], log: Path | None = None) -> None:
    """Wait until it holds; a test that waits in vain shows the end of `log`."""
    try:
        await eventually(holds)
    except AssertionError as error:
        said = log.read_text()[-4000:] if log else ""  # noqa: ASYNC240 - the test is over
        pytest.fail(f"{error}\n{said}")
