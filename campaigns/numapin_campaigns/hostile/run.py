"""One hostile run: its authors, its operator, what is written down."""

import argparse
import asyncio
import json
import random
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import MethodType
from typing import Any, TextIO

from numapin_api import names
from numapin_campaigns.frame.judge import Verdict
from numapin_campaigns.frame.plain import PlainReport
from numapin_campaigns.hostile.disturbances import DISTURBANCES, Disturbances
from numapin_campaigns.hostile.invariants import Bounds, Checks
from numapin_campaigns.hostile.liar import LIAR
from numapin_campaigns.hostile.operations import Author, Cast, Operation
from numapin_campaigns.hostile.policy_author import POLICY_AUTHOR
from numapin_campaigns.hostile.stage import Stage
from numapin_campaigns.hostile.tenant import TENANT
from numapin_client.client import connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_lab.controlplane.service_accounts import ServiceAccount, log_in
from numapin_lab.errors import LabError
from numapin_lab.played.control_plane import LargePlane
from numapin_lab.played.enforcers import played
from numapin_lab.played.machines import captured
from numapin_lab.played.operator_process import OperatorRun

AUTHORS: dict[str, tuple[Author, float]] = {
    "tenant": (TENANT, 0.5),
    "node": (LIAR, 0.7),
    "policy": (POLICY_AUTHOR, 2.5),
}
"""Each author, and the mean seconds between two of its ideas."""

PREPARE_SECONDS = 120.0
SHOWN_BYTES = 2000


class Record:
    """The files of a run: operations, violations, the operator's log."""

    def __init__(self, folder: Path, seed: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.seed = folder, seed
        self.violations: list[dict[str, Any]] = []
        self.began = time.monotonic()
        self._last: list[str] = []
        self._file: TextIO = (folder / "operations.jsonl").open("a")

    def operation(self, author: str, number: int, operation: Operation, outcome: str) -> None:
        """Write down one request and its outcome."""
        body = json.dumps(operation.body)
        shown = body if len(body) <= SHOWN_BYTES else f"{len(body)} bytes: {body[:SHOWN_BYTES]}"
        line = {
            "seconds": round(time.monotonic() - self.began, 2),
            "author": author,
            "number": number,
            "what": operation.what,
            "object": f"{operation.resource.plural} {operation.key} {operation.subresource}",
            "outcome": outcome,
            "body": shown,
        }
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        self._last = [*self._last[-19:], f"{author}/{number} {operation.what} {line['object']}"]

    def violation(self, invariant: str, seen: str) -> None:
        """Write down a violation with the operations before it."""
        at = round(time.monotonic() - self.began, 1)
        found = {"seconds": at, "invariant": invariant, "seen": seen, "before": self._last}
        self.violations.append(found)
        print(f"VIOLATION after {at} s, seed {self.seed}: {invariant}: {seen[:400]}", flush=True)


class Run:
    """One run: its parts and its end."""

    def __init__(self, plane: LargePlane, stage: Stage, record: Record, login: Path) -> None:
        self.plane, self.stage, self.record, self._login = plane, stage, record, login
        self.log = record.folder / "operator.log"
        self.operator = OperatorRun(login, self.log)
        self.starts = 1

    async def work(self, name: str) -> None:
        """Let one author work until cancelled."""
        author, pause = AUTHORS[name]
        number = 0
        while True:
            number += 1
            rng = random.Random(f"{self.record.seed}/{name}/{number}")
            for operation in author(rng, number, self.stage.cast):
                outcome = await self.stage.send(operation)
                self.record.operation(name, number, operation, outcome)
            await asyncio.sleep(rng.expovariate(1 / pause))

    async def watch_over(self) -> None:
        """Report an operator that has ended, and start it again."""
        while True:
            await asyncio.sleep(3)
            if self.operator.ended:
                status = self.operator.stop()
                self.record.violation("the operator never ends", f"exit status {status}")
                self.operator, self.starts = OperatorRun(self._login, self.log), self.starts + 1


def _report(run: Run, checks: Checks, disturbances: Disturbances, stop: int) -> PlainReport:
    """What the run has shown."""
    by_kind: dict[str, dict[str, int]] = {}
    for (what, outcome), count in sorted(run.stage.answers.items()):
        by_kind.setdefault(what, {})[outcome] = count
    errors = Counter(
        f"{line.get('logger')}: {line.get('text')}"
        for line in run.operator.lines()
        if line.get("level") == "error" or "traceback" in line
    )
    return PlainReport(
        seed=run.record.seed,
        verdict=Verdict(tuple(run.record.violations)),
        warnings=dict(errors.most_common()),
        seconds=time.monotonic() - run.record.began,
        own={
            "requests": sum(run.stage.answers.values()),
            "operatorStarts": run.starts,
            "operatorExitStatus": stop,
            **disturbances.figures(),
            **checks.figures(),
            "answers": by_kind,
        },
    )


async def perform(plane: LargePlane, record: Record, options: argparse.Namespace) -> PlainReport:
    """Prepare, let all authors work for the time, end."""
    account = ServiceAccount(names.NAMESPACE, names.OPERATOR_SERVICE_ACCOUNT)
    login = log_in(plane, account, record.folder / "login")
    control, tenants, evil = (
        [f"{role}-{one}" for one in range(4)] for role in ("control", "tenant", "evil")
    )
    cast = Cast(control, tenants, evil, topologies=captured())
    async with connect(kubeconfig_login(str(plane.kubeconfig))) as api:
        stage = Stage(api, cast)
        await stage.prepare()
        run = Run(plane, stage, record, login)
        bounds = Bounds(options.placed, options.step, options.told)
        checks = Checks(stage, lambda: run.operator, bounds, record.violation)
        disturbances = Disturbances(plane, stage, checks)
        honest = (*cast.control, *cast.tenant)
        arguments = ("--end-containers", "--only", *honest)
        with played(plane.kubeconfig, record.folder / "notes", captured(), *arguments):
            try:
                if not await stage.until_planned(control, PREPARE_SECONDS):
                    raise LabError("the control nodes were not planned in time")
                await checks.settle()
                run.operator.silence.take()
                with suppress(TimeoutError):
                    async with asyncio.timeout(options.minutes * 60):
                        await _all(run, checks, disturbances, options)
            finally:
                await checks.alive()
                stop = await asyncio.to_thread(run.operator.stop)
                if stop:
                    record.violation("the operator ends cleanly", f"exit status {stop}")
    return _report(run, checks, disturbances, stop)


async def _all(
    run: Run, checks: Checks, disturbances: Disturbances, options: argparse.Namespace
) -> None:
    async with asyncio.TaskGroup() as tasks:
        for name in AUTHORS:
            tasks.create_task(run.work(name), name=name)
        tasks.create_task(run.watch_over(), name="watch over")
        for name, one in DISTURBANCES.items():
            seconds = getattr(options, name.replace("-", "_"))
            disturb = MethodType(one.disturb, disturbances)
            tasks.create_task(disturbances.every(seconds, disturb), name=name)
        tasks.create_task(checks.every(2, checks.alive), name="alive")
        tasks.create_task(checks.every(5, checks.control_nodes), name="control nodes")
        tasks.create_task(checks.every(5, checks.assignments), name="assignments")
