"""One run: pods come, are bound by the scheduler, and end; what is seen of them is written down."""

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from numapin_api.cpuset import CpuSet
from numapin_api.forms.spec import read_spec
from numapin_campaigns.holding.kubelets import REASON, Kubelets
from numapin_campaigns.holding.outcome import Fate, Outcome, Way
from numapin_campaigns.holding.stage import end_pod, stage
from numapin_campaigns.holding.workload import NAMESPACE, OF, Plan, Planned
from numapin_campaigns.laws.assignment import overlaps
from numapin_client.cache.informer import Informer
from numapin_client.cache.store import Change
from numapin_client.client import ApiClient, Source
from numapin_client.resources import NODE_ASSIGNMENTS, PODS, Json, Key
from numapin_lab.components.build import Say
from numapin_lab.played.machines import TWO_NUMA_NODES

AGAIN_SECONDS: Final = 1.0
"""How long after its pod has failed a controller creates another one."""

PATIENCE_SECONDS: Final = 60.0
"""How long pods that are left may take, once all were created and the last could have ended."""

PROGRESS_SECONDS: Final = 10.0
TICK_SECONDS: Final = 0.1
NUMA_NODES: Final = [CpuSet.parse(one["cpus"]) for one in TWO_NUMA_NODES["numaNodes"]]


class PodSeen(NamedTuple):
    """What is kept of a pod."""

    name: str
    of: str
    node: str


def _pod(body: Json) -> PodSeen:
    metadata = body["metadata"]
    of = (metadata.get("labels") or {}).get(OF, "")
    return PodSeen(metadata["name"], of, body["spec"].get("nodeName", ""))


class Run:
    """The pods of one way, and who plays their controller and their kubelets."""

    def __init__(self, api: ApiClient, way: Way, plan: Plan, say: Say) -> None:
        self._api, self._way, self._plan, self._say = api, way, plan, say
        self._kubelets = Kubelets()
        self._planned = {one.name: one for one in plan.pods}
        self._created: dict[str, float] = {}
        self._attempts: dict[str, asyncio.Future[Json]] = {}
        self._begun: set[str] = set()
        self._lines: dict[str, tuple[float, str]] = {}
        self._uids: dict[str, str] = {}
        self._broken: list[str] = []
        self._fates = {one.name: Fate(one.name) for one in plan.pods}
        self._lives: asyncio.TaskGroup

    async def play(self) -> Outcome:
        """Until all pods have ended, or have had time enough."""
        began = time.monotonic()
        pods = Informer(self._api, Source(PODS, NAMESPACE), _pod, self._note_pods)
        background = [pods.run(), self._show()]
        if self._way is not Way.KUBELET:
            source = Source(NODE_ASSIGNMENTS)
            background.append(Informer(self._api, source, dict, self._note_lines).run())
        async with asyncio.TaskGroup() as self._lives:
            tasks = [self._lives.create_task(one) for one in background]
            tasks += [self._lives.create_task(self._come(one)) for one in self._plan.pods]
            await self._until_over()
            for task in tasks:
                task.cancel()
        return self._outcome(time.monotonic() - began)

    async def _until_over(self) -> None:
        last = max(one.at_seconds + one.runs_seconds for one in self._plan.pods)
        deadline = time.monotonic() + last + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            if all(one.ended for one in self._fates.values()):
                return
            await asyncio.sleep(TICK_SECONDS)

    async def _show(self) -> None:
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            fates = self._fates.values()
            bound, ended = sum(bool(one.node) for one in fates), sum(one.ended for one in fates)
            waiting = sum(one in self._created and not self._fates[one].node for one in self._fates)
            of = f"of {len(self._fates)} pods {bound} were bound, {ended} have ended"
            self._say(f"{self._way}: {of}, {waiting} wait")

    async def _come(self, planned: Planned) -> None:
        await asyncio.sleep(planned.at_seconds)
        self._created[planned.name] = time.monotonic()
        await self._create(planned, 1)

    async def _create(self, planned: Planned, attempt: int) -> None:
        body = planned.body(attempt)
        answer = self._attempts[body["metadata"]["name"]] = asyncio.Future()
        made = await self._api.create(PODS, body)
        self._uids[planned.name] = made["metadata"]["uid"]
        answer.set_result(made)

    def _note_pods(self, changes: Sequence[Change[PodSeen]]) -> None:
        now = time.monotonic()
        for change in changes:
            pod = change.new
            if pod is not None and pod.of and pod.node and pod.name not in self._begun:
                self._begun.add(pod.name)
                self._lives.create_task(self._live(pod, now))

    async def _live(self, pod: PodSeen, now: float) -> None:
        """What a pod's kubelet does, and its controller if it has failed."""
        planned, fate = self._planned[pod.of], self._fates[pod.of]
        body = await self._attempts[pod.name]
        if self._way is Way.KUBELET and not self._kubelets.admits(pod.node, body):
            fate.refusals += 1
            await self._report(pod.name, {"phase": "Failed", "reason": REASON})
            await asyncio.sleep(AGAIN_SECONDS)
            await self._create(planned, fate.refusals + 1)
            return
        fate.node, fate.bound = pod.node, now - self._created[pod.of]
        await self._report(pod.name, {"phase": "Running"})
        await asyncio.sleep(planned.runs_seconds)
        await end_pod(self._api, pod.name)
        if self._way is Way.KUBELET:
            self._kubelets.release(pod.node, body["metadata"]["uid"])
        fate.ended = True

    async def _report(self, name: str, status: Json) -> None:
        key = Key(name, NAMESPACE)
        await self._api.merge_patch(PODS, key, {"status": status}, subresource="status")

    def _note_lines(self, changes: Sequence[Change[Json]]) -> None:
        now = time.monotonic()
        for change in changes:
            if change.new is None:
                continue
            read, node = read_spec(change.new), change.key.name
            found = [*read.faults, *overlaps(read.wire)]
            for one in read.wire.get("containers") or ():
                if one["podUID"] not in self._lines:
                    self._lines[one["podUID"]] = (now, node)
                cpus = CpuSet.parse(one["cpus"])
                if not any(cpus <= numa_node for numa_node in NUMA_NODES):
                    found.append(f"{one['pod']} has {cpus}, which is no one NUMA node's")
            self._broken += [f"{node}: {text}" for text in found]

    def _outcome(self, seconds: float) -> Outcome:
        for fate in self._fates.values():
            if self._way is Way.KUBELET:
                fate.placed = fate.bound
            elif (seen := self._lines.get(self._uids.get(fate.name, ""))) is not None:
                at, fate.place = seen
                fate.placed = at - self._created[fate.name]
        fates = tuple(self._fates.values())
        return Outcome(self._way, fates, seconds, os.getloadavg()[0], tuple(self._broken))


async def perform(way: Way, plan: Plan, folder: Path, say: Say) -> Outcome:
    """Start a cluster, and have the pods of the plan placed in one way.

    Raises:
        LabError: the cluster could not be started.
    """
    say(f"{way}: {way.meaning}: starting {plan.nodes} nodes")
    async with stage(way, plan, folder) as api:
        say(f"{way}: {len(plan.pods)} pods come within {plan.pods[-1].at_seconds:.0f} s")
        return await Run(api, way, plan, say).play()
