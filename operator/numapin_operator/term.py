"""What decides and writes while this operator leads: made anew for each term."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from numapin_daemon.clock import Clock
from numapin_daemon.telemetry.meter import Meter
from numapin_operator.annotation.refusal_writer import WORKERS as TELLING
from numapin_operator.annotation.refusal_writer import RefusalAnnotations
from numapin_operator.annotation.writer import WORKERS as ANNOTATING
from numapin_operator.annotation.writer import PodAnnotations
from numapin_operator.cluster import Cluster
from numapin_operator.holding.controller import Planning, PodHolding, Watch
from numapin_operator.noderesourcetopology.publisher import WORKERS as PUBLISHING
from numapin_operator.noderesourcetopology.publisher import NoPublisher, Publisher
from numapin_operator.nodes.controller import Controller
from numapin_operator.nodes.decide import NodePicture
from numapin_operator.nodes.decide.present import present_machine
from numapin_operator.nodes.events.refusal_events import RefusalEvents
from numapin_operator.nodes.eviction.evictor import Evictor
from numapin_operator.nodes.eviction.history import EvictionHistory
from numapin_operator.nodes.outputs import Outputs
from numapin_operator.observe.cache import ClusterState
from numapin_operator.policies.sharing.claims import Sharing
from numapin_operator.policies.status_writer import StatusWriter
from numapin_operator.queues.workqueue import WorkQueue
from numapin_operator.shards.division import Portion
from numapin_operator.telemetry.numa_nodes import NumaNodes
from numapin_operator.telemetry.states import Written
from numapin_operator.telemetry.table import EVICTIONS

PLANNING: Final = 16
"""Nodes planned and written at the same time."""


@dataclass(frozen=True, slots=True)
class Lasting:
    """What outlives a term.

    Attributes:
        cluster: what is read and written.
        state: the cluster as observed, in each term and between them.
        leading: set while this operator may write.
        clock: measures every time.
        meter: counts plans, writes, refusals and evictions.
        written: called with each assignment that was created or changed.
        annotates: whether workloads are told which CPUs they have.
        tells_refused: whether refused pods are told so.
        measures_numa: whether what NUMA nodes have left is measured.
        evictions: what this operator has evicted, and why: the pods that replace it must wait as
            long in the next term.
        publishes: whether NodeResourceTopologies are written where a policy says so.
        heartbeats: watches the heartbeats of enforcers for a term; None if nobody does.
        portion: the nodes that this operator plans; None for all.
        held_pods: makes the informer of pods that are not bound; None if nobody holds any.
    """

    cluster: Cluster
    state: ClusterState
    leading: asyncio.Event
    clock: Clock
    meter: Meter
    written: Callable[[Written], object]
    annotates: bool = False
    tells_refused: bool = False
    measures_numa: bool = False
    evictions: EvictionHistory = field(default_factory=EvictionHistory)
    publishes: bool = False
    heartbeats: Callable[[], Coroutine[Any, Any, None]] | None = None
    portion: Portion | None = None
    held_pods: Watch | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """Something that runs for as long as a term lasts, in one task or in several equal ones."""

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]
    tasks: int = 1


class Term:
    """The parts that decide and write, for one term.

    None of them knows anything of an earlier term: another operator may have led since, and what
    was due then must be due again. What a term has to know is in the cluster, and each node is
    planned once when it begins. So a timer, a queue or a memory needs no code for the next term.

    Attributes:
        queue: the nodes that wait to be planned.
        outputs: where what was decided goes, besides the assignments.
        controller: plans and writes.
        numa_nodes: measures what NUMA nodes have left; empty if that is not wanted.
    """

    def __init__(self, lasting: Lasting) -> None:
        """Make the parts, and have them told what changes from now on; none runs yet."""
        cluster, state, clock = lasting.cluster, lasting.state, lasting.clock
        self._state, self._leading, self._heartbeats = state, lasting.leading, lasting.heartbeats
        self.queue = WorkQueue(clock=clock)
        statuses = StatusWriter(cluster, state, lasting.leading, clock)
        events = RefusalEvents(cluster, clock)
        evictor = Evictor(cluster, state, events, lasting.leading, clock)
        _share(lasting.portion, statuses, evictor)
        evictor.history = lasting.evictions
        evictor.on_result = partial(lasting.meter.add, EVICTIONS)
        self.outputs = Outputs(statuses, events, evictor, lasting.meter, lasting.written)
        self._edited: list[Callable[[str], object]] = []
        self._annotations: PodAnnotations | None = None
        if lasting.annotates:
            told = PodAnnotations(cluster, state, self.queue.add, clock)
            self._annotations = self.outputs.telling = told
            self._edited.append(told.note_edit)
        self._refusals: RefusalAnnotations | None = None
        if lasting.tells_refused:
            self._refusals = RefusalAnnotations(cluster, state, clock)
            self.outputs.refusals = self._refusals.tell
            self._edited.append(self._refusals.note_edit)
        self.numa_nodes, self._measures_numa = NumaNodes(), lasting.measures_numa
        state.annotated = self._note_edit
        self.controller = Controller(cluster, state, self.queue, self.outputs, clock)
        self._publisher = self._make_publisher(lasting)
        self.outputs.assigned, state.counted = self._assigned, self._publisher.tell
        self.outputs.other_writer = self._publisher.other_writer
        state.wake = self.queue.add
        self._holding = self._hold(lasting)

    def _hold(self, lasting: Lasting) -> PodHolding | None:
        """What holds pods; of several shards one opens the gates, and none holds any."""
        portion, watch = lasting.portion, lasting.held_pods
        if watch is None or (portion is not None and portion.shard != 0):
            return None
        planning = Planning(self.controller.foresee, self.queue.add, watch)
        events, clock = self.outputs.events, lasting.clock
        return PodHolding(lasting.cluster, lasting.state, planning, events, clock)

    def _make_publisher(self, lasting: Lasting) -> Publisher | NoPublisher:
        policy_of = self.controller.policy_of
        if not lasting.publishes:
            return NoPublisher(policy_of)
        parts = lasting.cluster, lasting.state, policy_of, lasting.clock, lasting.portion
        return Publisher(*parts)

    def _assigned(self, picture: NodePicture) -> None:
        """A node was planned, and what has changed is written."""
        self._publisher.tell(picture.name)
        if self._measures_numa:
            self.numa_nodes.note(picture.name, present_machine(picture))
        if self._holding is not None:
            self._holding.settled(picture)

    def _note_edit(self, node: str) -> None:
        """An annotation of a pod of a node was changed by somebody, or by us."""
        for note in self._edited:
            note(node)

    def parts(self) -> tuple[Part, ...]:
        """All that runs until the term ends."""
        outputs = self.outputs
        parts = [
            Part("planning", partial(self.controller.work, self._leading), PLANNING),
            Part("policy statuses", outputs.statuses.run),
            Part("refusal events", outputs.events.run),
            Part("eviction", outputs.evictor.run),
        ]
        if isinstance(self._publisher, Publisher):
            parts.append(Part("publishing", self._publisher.work, PUBLISHING))
            parts.append(Part("sweeping what is published", self._publisher.sweep))
        if self._annotations is not None:
            parts.append(Part("annotating", self._annotations.work, ANNOTATING))
        if self._refusals is not None:
            parts.append(Part("telling refused pods", self._refusals.work, TELLING))
        if self._holding is not None:
            parts.append(Part("held pods", self._holding.run))
        if self._heartbeats is not None:
            parts.append(Part("heartbeats", self._heartbeats))
        return tuple(parts)

    async def run(self) -> None:
        """Plan every node, then those that change; what is in flight is cancelled with the term."""
        try:
            self._state.wake_all()
            async with asyncio.TaskGroup() as tasks:
                for part in self.parts():
                    for number in range(part.tasks):
                        tasks.create_task(part.run(), name=f"{part.name} {number}")
        finally:
            self._state.tell_nobody()


def _share(portion: Portion | None, statuses: StatusWriter, evictor: Evictor) -> None:
    """Have one of several shards count and evict as one of them."""
    if portion is not None:
        statuses.sharing = Sharing(portion.shard, portion.shards)
        evictor.pause_seconds *= portion.shards
