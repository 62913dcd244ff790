"""Whose turn it is: held pods in their order, and the node that is kept for the first that waits.

Does no I/O.
"""

from collections.abc import Collection, Generator, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from numapin_operator.observe.holding.held_pod import HeldPod

PATIENCE_SECONDS: Final = 30.0
"""How long younger pods may fill the node on which the first pod that waits would fit soonest."""


class Places(Protocol):
    """What is known of nodes, with all pods that were given a place so far."""

    def open_to(self, pod: HeldPod) -> Iterable[str]:
        """The nodes on which a pod may fit, the best first."""

    def place(self, pod: HeldPod, node: str) -> bool:
        """Give a pod a place on a node; False if it does not fit there."""

    def soonest(self, pod: HeldPod) -> str | None:
        """The node that comes nearest to having room; None if it fits on no empty node."""

    def may_fit(self, pod: HeldPod, node: str) -> bool:
        """Whether a pod may still use a node once that has room."""


@dataclass(slots=True)
class Patience:
    """What is remembered of pods that wait. A restart or another leader begins with an empty one.

    Attributes:
        since: when each pod was first the one for which a node is kept.
        kept: the node that is kept for each of them.
    """

    since: dict[str, float] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)

    def forget_others(self, uids: Collection[str]) -> None:
        """Forget pods that wait no more."""
        for mine in (self.since, self.kept):
            for uid in mine.keys() - set(uids):
                del mine[uid]


def give_places(
    pods: Iterable[HeldPod], places: Places, patience: Patience, now: float
) -> Generator[tuple[HeldPod, str | None] | None, None, None]:
    """Give each pod that fits a place: the higher priority first, then the older pod.

    The first one that fits nowhere has a node kept, on which no pod behind it gets a place once it
    has waited for `PATIENCE_SECONDS`: it fits there when what runs there has ended.

    Yields:
        Each pod with its node, None if it waits; and None after each question, to pause.
    """
    queue = sorted(pods, key=lambda one: one.order)
    patience.forget_others({one.uid for one in queue})
    closed: str | None = None
    has_first = False
    for pod in queue:
        chosen: str | None = None
        for node in places.open_to(pod):
            if node != closed and places.place(pod, node):
                chosen = node
                break
            yield None
        if chosen is None and not has_first:
            has_first, closed = _keep(pod, places, patience, now)
        yield pod, chosen


def _keep(pod: HeldPod, places: Places, patience: Patience, now: float) -> tuple[bool, str | None]:
    """Keep a node for a pod; whether there is one, and which, once the pod has waited enough."""
    node = patience.kept.get(pod.uid)
    if node is None or not places.may_fit(pod, node):
        node = places.soonest(pod)
    if node is None:
        patience.kept.pop(pod.uid, None)
        return False, None
    patience.kept[pod.uid] = node
    since = patience.since.setdefault(pod.uid, now)
    return True, node if now - since >= PATIENCE_SECONDS else None
