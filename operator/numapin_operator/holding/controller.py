"""Gives held pods a place on a node, then opens their gate; tells those that wait why."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from numapin_api.conditions.reasons import Reason
from numapin_client.cache.informer import Informer
from numapin_daemon.clock import Clock
from numapin_daemon.slices import Slices
from numapin_daemon.worker import Worker
from numapin_operator.cluster import Cluster, PodEvent
from numapin_operator.holding.gates import Gates
from numapin_operator.holding.groups import PartlyPlaced, groups_of, placed_of
from numapin_operator.holding.places import NodePlaces
from numapin_operator.holding.telling import HeldTexts
from numapin_operator.holding.turns import Patience, give_places
from numapin_operator.holding.unheld import why_not_held
from numapin_operator.nodes.decide import NodePicture
from numapin_operator.nodes.events.refusal_events import RefusalEvents
from numapin_operator.observe.cache import ClusterState, Wake
from numapin_operator.observe.holding.held_pod import HeldPod

AGAIN_SECONDS: Final = 5.0
"""How often pods are looked at while one waits, whatever happens: namespaces are read here."""

OPENED_SECONDS: Final = 300.0
"""How long a pod that was opened for its node keeps its place there until it is bound."""

WISH_SECONDS: Final = 10.0
"""How long a node that cannot be written is waited for before another one is chosen."""

OPENING: Final = 8
"""Gates that are opened at the same time."""

_log = logging.getLogger(__name__)


class Watch(Protocol):
    """Makes the informer of pods that are not bound."""

    def __call__(self, state: ClusterState, /) -> Informer[HeldPod | None]:
        """It fills `state.held` while it runs."""


@dataclass(frozen=True, slots=True)
class Planning:
    """What holding needs of others.

    Attributes:
        foresee: what would be decided by for a node.
        wake: has a node planned.
        watch: makes the informer of pods that are not bound.
    """

    foresee: Callable[[str], NodePicture]
    wake: Wake
    watch: Watch


class PodHolding:
    """Holds pods for a term of leadership.

    Nothing is watched before a policy says Hold, unless the nodes are divided among shards.
    """

    def __init__(
        self,
        cluster: Cluster,
        state: ClusterState,
        planning: Planning,
        events: RefusalEvents,
        clock: Clock,
    ) -> None:
        """Hold nothing yet."""
        self._state, self._planning, self._events = state, planning, events
        self._clock = clock
        self._needed, self._is_listed = asyncio.Event(), False
        if state.is_divided:
            self._needed.set()  # the nodes of a policy that says Hold may all be of other shards
        self._dirty: set[str] = set()
        self._places = NodePlaces(state.namespaces, self._wish)
        self._patience = Patience()
        self._partly = PartlyPlaced()
        self._wished_at: dict[str, float] = {}
        self._opened_at: dict[str, float] = {}
        self._gates = Gates(cluster, state, events, clock)
        self._texts = HeldTexts(cluster, state, events, clock)
        self._worker = Worker("holding", self._look, clock=clock)

    def settled(self, picture: NodePicture) -> None:
        """Take in that a node was planned, and what its assignment says now."""
        name, held = picture.name, self._state.held
        governing = self._state.governing(name)
        if governing is not None and governing.spec.on_unsatisfiable == "Hold":
            self._needed.set()
        if not self._needed.is_set():
            return
        assignment = self._state.assignments.get(name)
        held.note_lines(name, assignment.spec if assignment else None)
        for pod in picture.wishes:
            if held.wished(pod.uid) == name:
                held.withdraw(pod.uid)
        self._dirty.add(name)
        self._request()

    async def run(self) -> None:
        """Hold pods until cancelled."""
        await self._needed.wait()
        informer = self._planning.watch(self._state)
        self._state.held.changed = lambda _: self._request()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(informer.run(), name="held pods informer")
                await informer.synced.wait()
                self._begin()
                tasks.create_task(self._worker.run(), name="holding")
                for number in range(OPENING):
                    tasks.create_task(self._gates.work(), name=f"opening gates {number}")
                tasks.create_task(self._texts.work(), name="telling held pods")
        finally:
            self._state.held.changed = bool
            self._state.held.clear()

    def _begin(self) -> None:
        """Find the places that an earlier operator has given."""
        for name in self._state.assignments:
            self._state.held.note_lines(name, self._state.assignments[name].spec)
        self._dirty.update(self._state.node_names())
        self._is_listed = True
        self._request()

    def _request(self) -> None:
        if self._is_listed and self._state.held.pods:
            self._worker.request()

    def _wish(self, uid: str, node: str) -> None:
        self._wished_at[uid] = self._clock.monotonic()
        self._state.held.wish(uid, node)

    async def _look(self) -> float | None:
        """Look at every held pod once."""
        slices = Slices(self._clock)
        while self._dirty:
            self._take_in(self._dirty.pop())
            await slices.rest()
        waiting = [pod for pod in tuple(self._state.held.pods.values()) if self._is_waiting(pod)]
        self._places.begin(waiting)
        queue = [pod for pod in waiting if not self._is_unheld(pod)]
        now = self._clock.monotonic()
        left: list[HeldPod] = []
        for step in give_places(queue, self._places, self._patience, now):
            if step is not None:
                pod, node = step
                if node is None:
                    left.append(pod)
                else:
                    self._planning.wake(node, urgent=True)
            await slices.rest()
        blocked = await self._blocked(left, slices, now)
        for pod in left:
            if (nearest := self._places.nearest(pod)) is not None:
                self._texts.tell(pod, *nearest, is_blocked=pod.pod.origin.uid in blocked)
        self._forget()
        return AGAIN_SECONDS if self._state.held.pods else None

    def _take_in(self, name: str) -> None:
        """Take in a node; one that cannot be planned takes no pods, and says so itself."""
        try:
            picture = self._planning.foresee(name)
            self._places.take_in(name, picture, self._state.governing(name))
        except Exception as error:  # noqa: BLE001 - one node must not stop the others
            self._places.leave_out(name)
            _log.debug("a node takes no held pods", extra={"node": name, "error": repr(error)})

    def _is_waiting(self, pod: HeldPod) -> bool:
        """Whether a pod needs a place; what follows for one that has a place is done."""
        held, uid = self._state.held, pod.uid
        node = held.reserved(uid)
        if not pod.is_gated:
            self._mind_opened(pod, node)
            return False
        if node is not None:
            if self._places.suits(pod, node):
                self._gates.open(uid)
                return False
            held.give_up(uid)
            self._planning.wake(node, urgent=True)
        if held.wished(uid) is not None:
            since = self._wished_at.get(uid, 0.0)
            if self._clock.monotonic() - since < WISH_SECONDS:
                return False
            held.withdraw(uid)
        return not pod.other_gates

    def _mind_opened(self, pod: HeldPod, node: str | None) -> None:
        """Free the place of a pod that was opened for its node, and is not bound in time."""
        if node is None:
            return
        now = self._clock.monotonic()
        if now - self._opened_at.setdefault(pod.uid, now) >= OPENED_SECONDS:
            self._state.held.give_up(pod.uid)
            self._planning.wake(node, urgent=True)
            note = (
                f"it was opened for node {node}, and no scheduler has bound it there for "
                f"{OPENED_SECONDS / 60:.0f} minutes: its place is free again, and it can run on no "
                "other node; delete it, so that its controller creates another one"
            )
            view = pod.pod
            lost = PodEvent(view.namespace, view.name, view.uid, Reason.PLACE_LOST, note)
            self._events.inform([lost])

    def _is_unheld(self, pod: HeldPod) -> bool:
        """Whether nothing holds a pod: its gate is opened then."""
        labels = self._state.namespaces.get(pod.pod.namespace)
        if labels is None:
            return False  # it is seen soon
        why = why_not_held(pod, labels, may_be_held=self._places.is_held(pod))
        if why:
            self._gates.open(pod.uid, why)
        return bool(why)

    async def _blocked(self, left: Sequence[HeldPod], slices: Slices, now: float) -> frozenset[str]:
        """The groups that may wait for each other."""
        groups = groups_of(left)
        if now >= self._partly.next or not groups:
            placed: set[str] = set()
            for pods in self._places.pods_by_node() if groups else ():
                placed |= placed_of(groups, pods)
                await slices.rest()
            self._partly.note(placed, now)
        return self._partly.stuck

    def _forget(self) -> None:
        """Forget pods that are not held any more."""
        known = self._state.held.pods
        for mine in (self._wished_at, self._opened_at):
            for uid in mine.keys() - known.keys():
                del mine[uid]
        self._texts.forget_others(known.keys())
