"""What must hold all the time, whatever the authors do."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from numapin_api.forms.spec import read_spec
from numapin_campaigns.hostile.operations import Cast
from numapin_campaigns.hostile.stage import Stage
from numapin_campaigns.hostile.tenant import guaranteed
from numapin_campaigns.laws.assignment import overlaps
from numapin_client.client import Source
from numapin_client.errors import ClientError, NotFoundError
from numapin_client.resources import EVENTS, NODE_ASSIGNMENTS, PODS, Json, Key
from numapin_lab.played.operator_process import OperatorRun

Report = Callable[[str, str], None]


@dataclass(frozen=True)
class Bounds:
    """How long things may take, in seconds.

    Attributes:
        placed: from a valid pod on a control node until it has its CPUs.
        step: CPU time of one step of the operator's loop.
        told: from a refusal until its Event.
    """

    placed: float
    step: float
    told: float


@dataclass
class Checks:
    """All checks; `report` takes the name of an invariant and what was seen against it."""

    stage: Stage
    operator: Callable[[], OperatorRun]
    bounds: Bounds
    report: Report
    kept: dict[tuple[str, str], str] = field(default_factory=dict)
    longest_step: float = 0.0
    longest_step_name: str = "-"
    slowest_probe: float = 0.0
    probes: int = 0
    refusals_told: int = 0
    _led: float = 0.0
    _excused: int = 0
    _unready_told: bool = False
    _refused: dict[tuple[str, str], tuple[Key, float]] = field(default_factory=dict)
    _told: set[tuple[str, str]] = field(default_factory=set)

    @property
    def cast(self) -> Cast:
        """Who is in the run."""
        return self.stage.cast

    async def settle(self) -> None:
        """Put two lasting pods on each control node, and remember their CPUs.

        A pod before them goes again: planned from nothing, the node would give them other CPUs.
        """
        for node in self.cast.control:
            passing, uid = await self._add(f"passing-{node}", node, "2")
            await self._until_placed(node, uid)
            for number in range(2):
                _, uid = await self._add(f"lasting-{node}-{number}", node, "3")
                self.cast.victims.append(uid)
                self.kept[node, uid] = await self._until_placed(node, uid)
            await self.stage.force_delete(passing)

    async def _add(self, name: str, node: str, cpus: str) -> tuple[Key, str]:
        """Create a Guaranteed pod on a control node; returns its UID, too."""
        body = guaranteed(name, node, cpus)
        body["metadata"]["namespace"] = "quiet"
        made = await self.stage.api.create(PODS, body)
        return Key.of(made), made["metadata"]["uid"]

    async def every(self, seconds: float, check: Callable[[], Awaitable[None]]) -> None:
        """Repeat one check until cancelled."""
        while True:
            await self.when_possible(check)
            await asyncio.sleep(seconds)

    async def when_possible(self, step: Callable[[], Awaitable[None]]) -> None:
        """Make one step; the API server may be slow, or away."""
        try:
            await step()
        except (ClientError, TimeoutError) as error:
            print(f"{step.__name__} was not possible: {error}", flush=True)

    @asynccontextmanager
    async def excused(self) -> AsyncIterator[None]:
        """The operator need not lead meanwhile."""
        self._excused += 1
        try:
            yield
        finally:
            self._excused -= 1
            self._led = time.monotonic()

    async def until_leading(self) -> bool:
        """Wait until the operator leads; False if it does not within the bound."""
        deadline = time.monotonic() + self.bounds.placed
        while time.monotonic() < deadline:
            with suppress(ChildProcessError):
                if await asyncio.to_thread(self.operator().leads):
                    return True
            await asyncio.sleep(0.2)
        return False

    async def alive(self) -> None:
        """The operator runs, is ready and answers soon."""
        operator = self.operator()
        found = operator.silence.take()
        if found.step > self.longest_step:
            self.longest_step, self.longest_step_name = found.step, found.name
        if found.step > self.bounds.step:
            took = f"{found.name} took {found.step * 1000:.0f} ms of CPU time in one step"
            self.report("no step of the loop is long", took)
        try:
            leads = await asyncio.to_thread(operator.leads)
        except ChildProcessError:
            return  # it is reported by what starts it again
        now = time.monotonic()
        if leads or operator.ended or self._excused:
            self._led, self._unready_told = now, False
        since = max(self._led, operator.started)
        if now - since > self.bounds.placed and not self._unready_told:
            self._unready_told = True
            self.report("the operator stays ready", f"{operator.readiness()!r}")

    async def control_nodes(self) -> None:
        """Lasting pods keep exactly their CPUs; a new pod is placed soon, and goes again."""
        for node in self.cast.control:
            for (of, uid), cpus in self.kept.items():
                # While its NodeAssignment is deleted, nothing is known of the pod.
                if of == node and (held := await self._until_placed(node, uid)) != cpus:
                    text = f"{node}: pod {uid} had {cpus}, has {held}"
                    self.report("control pods keep their CPUs", text)
                    self.kept[node, uid] = held
            await self._probe(node)

    async def _probe(self, node: str) -> None:
        key, uid = await self._add(f"probe-{time.monotonic_ns()}", node, "2")
        begun = time.monotonic()
        if not await self._until_placed(node, uid):
            spec = (await self.stage.assignment(node)).get("spec")
            text = f"{node}: not placed after {self.bounds.placed:.0f} s: {str(spec)[:2000]}"
            self.report("control nodes get new pods placed", text)
        self.probes += 1
        self.slowest_probe = max(self.slowest_probe, time.monotonic() - begun)
        await self.stage.force_delete(key)

    async def _until_placed(self, node: str, uid: str) -> str:
        """The pod's CPUs; empty if it has none in time."""
        deadline = time.monotonic() + self.bounds.placed
        while time.monotonic() < deadline:
            if cpus := _cpus(await self.stage.assignment(node)).get(uid):
                return cpus
            if self._excused:
                deadline = time.monotonic() + self.bounds.placed
            await asyncio.sleep(0.3)
        return ""

    async def assignments(self) -> None:
        """No CPU has two owners, in any NodeAssignment; every refusal is told."""
        listed = (await self.stage.api.list_chunk(Source(NODE_ASSIGNMENTS), limit=0)).items
        for item in listed:
            read = read_spec(item)
            for fault in (*read.faults, *overlaps(read.wire)):
                self.report("nothing overlaps", f"{item['metadata']['name']}: {fault}")
            self._note_refusals(read.wire)
        await self._check_told()

    def _note_refusals(self, spec: Json) -> None:
        now = time.monotonic()
        for one in spec.get("refused") or ():
            subject = one["podUID"], one["reason"]
            key = Key(one["pod"], one["namespace"])
            self._refused.setdefault(subject, (key, now))

    async def _check_told(self) -> None:
        now = time.monotonic()
        due = [
            (subject, key)
            for subject, (key, since) in self._refused.items()
            if subject not in self._told and now - since > self.bounds.told
        ]
        if not due:
            return
        events = (await self.stage.api.list_chunk(Source(EVENTS), limit=0)).items
        seen = {(one["regarding"].get("uid"), one["reason"]) for one in events}
        for subject, key in due:
            self._told.add(subject)
            if subject in seen:
                self.refusals_told += 1
            elif await self._exists(key, subject[0]):
                self.report("every refusal is told", f"{key}: no Event {subject[1]}")

    async def _exists(self, key: Key, uid: str) -> bool:
        try:
            body = await self.stage.api.get(PODS, key)
        except NotFoundError:
            return False
        return bool(body["metadata"]["uid"] == uid)

    def figures(self) -> Json:
        """What was seen, for the report."""
        return {
            "longestStepCpuSeconds": round(self.longest_step, 3),
            "longestStep": self.longest_step_name,
            "probes": self.probes,
            "slowestProbeSeconds": round(self.slowest_probe, 2),
            "refusalsTold": self.refusals_told,
        }


def _cpus(assignment: Json) -> dict[str, str]:
    """The CPUs of each pod with one container."""
    containers = (assignment.get("spec") or {}).get("containers") or ()
    return {one["podUID"]: one["cpus"] for one in containers}
