"""The pods that wait for a node, and which node has a place for each. Does no I/O."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from numapin_api.schema.plain_assignment import ContainerAssignment, NodeAssignmentSpec
from numapin_operator.observe.holding.held_pod import HeldPod


def _ignore(_: str) -> None:
    """Do nothing."""


@dataclass(slots=True)
class HeldPods:
    """Pods that are not bound, while anybody watches them; none otherwise.

    A line of such a pod in an assignment is a reservation, and holds only on the pod's own node:
    that for which it was opened, or else the first one that was seen to have lines of it.

    Attributes:
        pods: by UID.
        changed: called with the UID of each pod that came, changed or went.
    """

    pods: dict[str, HeldPod] = field(default_factory=dict)
    changed: Callable[[str], object] = _ignore
    _reserved: dict[str, str] = field(default_factory=dict)
    _wishes: dict[str, str] = field(default_factory=dict)
    _given_up: set[str] = field(default_factory=set)

    @property
    def waiting(self) -> int:
        """How many pods wait for their gate; may be called in any thread."""
        return sum(pod.is_gated for pod in tuple(self.pods.values()))

    def put(self, pod: HeldPod) -> None:
        """Take in a pod."""
        self.pods[pod.uid] = pod
        self.changed(pod.uid)

    def drop(self, uid: str) -> str | None:
        """Take in that a pod is bound, has ended or is gone; return the node of its place."""
        if self.pods.pop(uid, None) is None:
            return None
        node = self._reserved.pop(uid, None) or self._wishes.get(uid)
        self._wishes.pop(uid, None)
        self._given_up.discard(uid)
        self.changed(uid)
        return node

    def clear(self) -> None:
        """Forget everything: nobody watches these pods any more."""
        for mine in (self.pods, self._reserved, self._wishes):
            mine.clear()
        self._given_up.clear()

    def wish(self, uid: str, node: str) -> None:
        """Have a node planned with a pod."""
        if uid in self.pods:
            self._wishes[uid] = node

    def withdraw(self, uid: str) -> None:
        """Have no node planned with a pod for which none has a place yet."""
        self._wishes.pop(uid, None)

    def wished(self, uid: str) -> str | None:
        """The node that is to be planned with a pod."""
        return self._wishes.get(uid)

    def wishes_for(self, node: str) -> list[HeldPod]:
        """The pods with which a node is to be planned, in their order."""
        uids = (uid for uid, wanted in self._wishes.items() if wanted == node)
        return sorted((self.pods[uid] for uid in uids if uid in self.pods), key=_order)

    def reserved(self, uid: str) -> str | None:
        """The node that has a place for a pod."""
        return self._reserved.get(uid)

    def give_up(self, uid: str) -> str | None:
        """Have the place of a pod released; return its node.

        One that was opened for its node gets no other place while it waits.
        """
        pod = self.pods.get(uid)
        if pod is not None and not pod.is_gated:
            self._given_up.add(uid)
        return self._reserved.pop(uid, None)

    def note_lines(self, node: str, spec: NodeAssignmentSpec | None) -> None:
        """Take in which pods have lines in a node's assignment; None: it has none."""
        if not self.pods:
            return
        found = {one.pod_uid for one in (spec.containers if spec else ())} & self.pods.keys()
        for uid in found:
            if self._belongs(self.pods[uid], node):
                self._reserved[uid] = node
                self._wishes.pop(uid, None)
        lost = [uid for uid, at in self._reserved.items() if at == node and uid not in found]
        for uid in lost:
            del self._reserved[uid]

    def with_place(self, node: str, lines: Iterable[ContainerAssignment]) -> Mapping[str, HeldPod]:
        """The pods that wait for this node, of which its assignment has lines."""
        if not self.pods:
            return {}
        uids = {one.pod_uid for one in lines} & self.pods.keys()
        mine = (self.pods[uid] for uid in sorted(uids))
        return {pod.uid: pod for pod in mine if self._belongs(pod, node)}

    def _belongs(self, pod: HeldPod, node: str) -> bool:
        if pod.uid in self._given_up:
            return False
        if pod.pinned and not pod.is_gated:
            return pod.pinned == node
        return self._reserved.get(pod.uid, node) == node


def _order(pod: HeldPod) -> tuple[int, str, str, str]:
    return pod.order
