"""A run with random valid and hostile objects, against the real kube-apiserver and the operator.

    python -m numapin_campaigns.hostile [--minutes 20] [--seed N] [--output FOLDER]

Three authors work side by side: a tenant who creates, changes and deletes pods; a node whose
enforcer and kubelet lie; an administrator who writes absurd policies. Beside them are control nodes
with a policy and pods of their own. All the time it is checked that

    the operator never ends, its loop never stands still, and it leads but for short times,
    the lasting pods of the control nodes keep exactly their CPUs,
    a new pod on a control node is placed within a bound,
    no CPU has two owners in any NodeAssignment,
    an Event tells every refusal of a pod that still exists.

Meanwhile the lead is lost and won again, control Nodes and their NodeAssignments are deleted, every
few minutes another API server takes over, and answers every watch with 410, or none answers at all.

An author's operation depends on the seed, on its number, and on what exists. FOLDER gets each
operation with its outcome, the operator's log, and a summary with every violation. An operator that
has ended is started again, so that a run can find more than one fault. The exit status is 1 after
a violation.
"""

import argparse
import asyncio
import json
import random
import secrets
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import MethodType
from typing import Any, TextIO

from numapin_api import names
from numapin_campaigns.hostile.disturbances import OUTAGE_SECONDS, Disturbances
from numapin_campaigns.hostile.invariants import Bounds, Checks
from numapin_campaigns.hostile.liar import liar
from numapin_campaigns.hostile.operations import Author, Cast, Operation
from numapin_campaigns.hostile.policy_author import policy_author
from numapin_campaigns.hostile.stage import Stage
from numapin_campaigns.hostile.tenant import tenant
from numapin_client.client import connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_lab.controlplane.service_accounts import ServiceAccount, log_in
from numapin_lab.errors import LabError
from numapin_lab.installed.manifests import OVERLAY
from numapin_lab.played.control_plane import LargePlane, large_plane
from numapin_lab.played.enforcers import played
from numapin_lab.played.machines import captured
from numapin_lab.played.operator_process import OperatorRun

AUTHORS: dict[str, tuple[Author, float]] = {
    "tenant": (tenant, 0.5),
    "node": (liar, 0.7),
    "policy": (policy_author, 2.5),
}
"""Each author, and the mean seconds between two of its ideas."""

DISTURBANCES = {
    "replace-seconds": (360.0, Disturbances.replace_server, "another API server takes over"),
    "outage-seconds": (290.0, Disturbances.outage, f"none answers for {OUTAGE_SECONDS:.0f} s"),
    "steal-seconds": (20.0, Disturbances.steal_lead, "the lead is lost and won"),
    "delete-seconds": (45.0, Disturbances.delete_assignment, "a NodeAssignment is deleted"),
    "register-seconds": (65.0, Disturbances.register_again, "a Node is registered again"),
}
"""Each disturbance: the seconds between two of them, what it does, and that for people."""

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


def summary(run: Run, checks: Checks, disturbances: Disturbances, stop: int) -> dict[str, Any]:
    """What the run has shown."""
    by_kind: dict[str, dict[str, int]] = {}
    for (what, outcome), count in sorted(run.stage.answers.items()):
        by_kind.setdefault(what, {})[outcome] = count
    errors = Counter(
        f"{line.get('logger')}: {line.get('text')}"
        for line in run.operator.lines()
        if line.get("level") == "error" or "traceback" in line
    )
    return {
        "seed": run.record.seed,
        "minutes": round((time.monotonic() - run.record.began) / 60, 1),
        "requests": sum(run.stage.answers.values()),
        "operator_starts": run.starts,
        "operator_exit_status": stop,
        **disturbances.summary(),
        "longest_step_cpu_seconds": round(checks.longest_step, 3),
        "longest_step": checks.longest_step_name,
        "probes": checks.probes,
        "slowest_probe_seconds": round(checks.slowest_probe, 2),
        "refusals_told": checks.refusals_told,
        "violations": run.record.violations,
        "errors_in_log": dict(errors.most_common()),
        "answers": by_kind,
    }


async def perform(plane: LargePlane, record: Record, options: argparse.Namespace) -> dict[str, Any]:
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
    return summary(run, checks, disturbances, stop)


async def _all(
    run: Run, checks: Checks, disturbances: Disturbances, options: argparse.Namespace
) -> None:
    async with asyncio.TaskGroup() as tasks:
        for name in AUTHORS:
            tasks.create_task(run.work(name), name=name)
        tasks.create_task(run.watch_over(), name="watch over")
        for name, (_, disturb, _) in DISTURBANCES.items():
            seconds = getattr(options, name.replace("-", "_"))
            tasks.create_task(
                disturbances.every(seconds, MethodType(disturb, disturbances)), name=name
            )
        tasks.create_task(checks.every(2, checks.alive), name="alive")
        tasks.create_task(checks.every(5, checks.control_nodes), name="control nodes")
        tasks.create_task(checks.every(5, checks.assignments), name="assignments")


def build_parser() -> argparse.ArgumentParser:
    """How long, with which seed, within which bounds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5.0, help="how long (5)")
    parser.add_argument("--seed", type=int, default=None, help="default: a random one, printed")
    for name, (default, _, meaning) in DISTURBANCES.items():
        shown = f"seconds until {meaning}, again and again; 0: never ({default:.0f})"
        parser.add_argument(f"--{name}", type=float, default=default, help=shown)
    parser.add_argument("--output", type=Path, default=Path(".hostile"), help="where records go")
    seconds = {
        "--placed": (30.0, "until a new pod on a control node is placed"),
        "--step": (0.1, "of CPU time that one step of the loop may take"),
        "--told": (60.0, "from a refusal to its Event"),
    }
    for name, (default, meaning) in seconds.items():
        parser.add_argument(name, type=float, default=default, help=f"seconds {meaning}")
    return parser


def main() -> int:
    """One run; its summary is printed and written."""
    options = build_parser().parse_args()
    seed = secrets.randbits(32) if options.seed is None else options.seed
    folder = options.output / f"{time.strftime('%Y%m%d-%H%M%S')}-{seed}"
    print(f"seed {seed}, records in {folder}", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    record = Record(folder.absolute(), seed)
    with tempfile.TemporaryDirectory(prefix="numapin-hostile-") as name:
        plane = large_plane(Path(name) / "plane")
        try:
            plane.start()
            plane.kubectl("apply", "--server-side", "-k", str(OVERLAY))
            rights = OVERLAY.parents[1] / "components" / "eviction" / "rbac.yaml"
            plane.kubectl("apply", "-f", str(rights))
            found = asyncio.run(perform(plane, record, options))
        finally:
            plane.stop()
    text = json.dumps(found, indent=1)
    (record.folder / "summary.json").write_text(text + "\n")
    print(text)
    return 1 if found["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
