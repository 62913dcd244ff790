"""On which node a held pod fits, by the plan that the node would have with it.

What is found holds until the node is planned again; then it is asked again. Does no I/O.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_api.meta.modes import is_enforced
from numapin_operator.holding.slots import Lack, Slot, lack_of, left_on, offers, repels, slot_of
from numapin_operator.nodes.decide import NodePicture
from numapin_operator.nodes.reserving import has_place, refusal_of, tried
from numapin_operator.observe.holding.held_pod import HeldPod
from numapin_operator.observe.records import PolicyView
from numapin_operator.placement import (
    HUGEPAGES_PREFIX,
    PodView,
    pod_cpus,
    pod_memory,
)
from numapin_operator.policies.selection import mark_selected
from numapin_operator.policies.status import policy_fault

EMPTY_TRIED: Final = 8
"""Nodes on which it is tried whether a pod would fit if they were empty."""

Labels = Mapping[str, str]


@dataclass(slots=True)
class _Shape:
    """Pods that fit on the same nodes.

    Attributes:
        pending: nodes that must be asked.
        allowed: nodes that the pods may use, whether or not there is room.
        lacks: what was found on nodes that were asked.
    """

    pending: set[str] = field(default_factory=set)
    allowed: set[str] = field(default_factory=set)
    lacks: dict[str, Lack] = field(default_factory=dict)


def is_holding(policy: PolicyView | None) -> bool:
    """Whether pods are held for the nodes of a policy."""
    if policy is None or policy.deleting or policy.spec.on_unsatisfiable != "Hold":
        return False
    return is_enforced(policy.spec.mode) and policy_fault(policy) is None


class NodePlaces:
    """Implements `Places` by the plans of nodes."""

    def __init__(
        self, namespaces: Mapping[str, Labels], wish: Callable[[str, str], object]
    ) -> None:
        """Know no node yet.

        Args:
            namespaces: their labels.
            wish: called with the UID of a pod and the node that is to be planned with it.
        """
        self._namespaces, self._wish = namespaces, wish
        self._slots: dict[str, Slot] = {}
        self._shapes: dict[Hashable, _Shape] = {}
        self._keys: dict[str, Hashable] = {}

    def take_in(self, name: str, picture: NodePicture, policy: PolicyView | None) -> None:
        """Take in a node as it is now, and have it asked again."""
        if picture.node is None or policy is None or not is_holding(policy):
            self.leave_out(name)
            return
        self._slots[name] = slot_of(picture, policy)
        for shape in self._shapes.values():
            shape.pending.add(name)

    def leave_out(self, name: str) -> None:
        """Take in that a node cannot be planned now."""
        self._slots.pop(name, None)
        for shape in self._shapes.values():
            shape.pending.add(name)

    def begin(self, pods: Iterable[HeldPod]) -> None:
        """Take in which pods wait, and forget the others."""
        self._keys = {pod.uid: self._key(pod) for pod in pods}
        used = set(self._keys.values())
        self._shapes = {key: one for key, one in self._shapes.items() if key in used}
        for key in used - self._shapes.keys():
            self._shapes[key] = _Shape(pending=set(self._slots))

    def is_held(self, pod: HeldPod) -> bool:
        """Whether any node whose policy holds pods may ever take this one."""
        self._sift(pod)
        return bool(self._shape(pod).allowed)

    def suits(self, pod: HeldPod, node: str) -> bool:
        """Whether a node may have a pod that has a place there."""
        slot = self._slots.get(node)
        return slot is not None and self._allows(slot, pod)

    def open_to(self, pod: HeldPod) -> Iterable[str]:
        """The nodes that may have room; the tightest first, or the emptiest by their policy."""
        shape, wanted = self._shape(pod), pod_cpus(pod.pod)
        self._sift(pod)
        found = []
        for name in tuple(shape.pending):
            slot = self._slots[name]
            if lack := lack_of(slot, pod, wanted):
                self._fail(shape, name, lack)
            else:
                spread = slot.policy.spec.placement.nodes == "Spread"
                found.append((-slot.free if spread else slot.free, name))
        return [name for _, name in sorted(found)]

    def place(self, pod: HeldPod, node: str) -> bool:
        """Plan a node with a pod; the pod is wished for if it gets its place."""
        slot, shape = self._slots[node], self._shape(pod)
        trial, decision = tried(slot.picture, self._marked(slot, pod))
        if not has_place(trial, decision, pod.uid):
            refusal = refusal_of(trial, decision, pod.uid)
            if refusal is None:
                reason, message = Reason.WAITING_FOR_ENDING_PODS.value, "ending pods have its place"
                self._fail(shape, node, Lack(slot.free, reason, message))
            else:
                found = Lack(slot.free, refusal.reason, refusal.message, refusal.container)
                self._fail(shape, node, found)
            return False
        self._wish(pod.uid, node)
        free = slot.free - pod_cpus(pod.pod)
        self._slots[node] = replace(slot, picture=trial, free=free, left=left_on(trial))
        return True

    def may_fit(self, pod: HeldPod, node: str) -> bool:
        """Whether a node exists, takes pods, and would have room for this one if it were empty."""
        slot = self._slots.get(node)
        if slot is None or slot.closed or not self._allows(slot, pod):
            return False
        picture, assignment = slot.picture, slot.picture.assignment
        if assignment is None or repels(slot, pod) or not offers(slot, pod):
            return False
        empty = replace(assignment.spec, containers=(), refused=(), refused_resizes=None)
        status = replace(assignment.status, running=(), unbound_memory=(), claims=())
        bare = replace(assignment, spec=empty, status=status)
        trial, decision = tried(
            replace(picture, pods=(), wishes=(), assignment=bare), self._marked(slot, pod)
        )
        return has_place(trial, decision, pod.uid)

    def soonest(self, pod: HeldPod) -> str | None:
        """Of the nodes where it would fit if they were empty, the one with most free CPUs."""
        allowed = self._shape(pod).allowed
        known = sorted((-self._slots[name].free, name) for name in allowed if name in self._slots)
        names = (name for _, name in known[:EMPTY_TRIED])
        return next((name for name in names if self.may_fit(pod, name)), None)

    def nearest(self, pod: HeldPod) -> tuple[str, Lack, int] | None:
        """The node that comes nearest to having room, what it lacks, and of how many it is one."""
        shape = self._shape(pod)
        found = [
            (bool(lack.container is None), -lack.free, name)
            for name, lack in shape.lacks.items()
            if name in shape.allowed and name in self._slots
        ]
        if not found:
            return None
        _, _, name = min(found)
        return name, shape.lacks[name], len(shape.allowed)

    def pods_by_node(self) -> list[tuple[PodView, ...]]:
        """The pods of each node, with those that have a place there or are to have one."""
        return [slot.picture.pods for slot in self._slots.values()]

    def _key(self, pod: HeldPod) -> Hashable:
        policies = {one.policy.name: one.policy for one in self._slots.values()}
        wanted = frozenset(name for name, one in policies.items() if self._selects(one, pod))
        return pod.shape, wanted

    def _shape(self, pod: HeldPod) -> _Shape:
        return self._shapes[self._keys[pod.uid]]

    def _sift(self, pod: HeldPod) -> None:
        """Leave the nodes that may not be used out of those that must be asked."""
        shape = self._shape(pod)
        for name in tuple(shape.pending):
            slot = self._slots.get(name)
            if slot is not None and self._allows(slot, pod):
                shape.allowed.add(name)
            else:
                shape.pending.discard(name)
                shape.allowed.discard(name)
                shape.lacks.pop(name, None)

    def _fail(self, shape: _Shape, name: str, lack: Lack) -> None:
        shape.pending.discard(name)
        shape.lacks[name] = lack

    def _selects(self, policy: PolicyView, pod: HeldPod) -> bool:
        [marked] = mark_selected(policy.spec.pods, [pod.pod], self._namespaces)
        return marked.selected and pod.pod.qos in policy.spec.pods.qos_classes

    def _marked(self, slot: Slot, pod: HeldPod) -> PodView:
        ranked = slot.picture.ranked
        [marked] = mark_selected(ranked[0].spec.pods, [pod.pod], self._namespaces)
        return marked

    def _allows(self, slot: Slot, pod: HeldPod) -> bool:
        """Whether a pod may use a node, full or not, and its policy would place it."""
        node = slot.picture.node
        assert node is not None
        if pod.pod.problem or not pod.rules.allow(node.name, node.labels):
            return False
        binds = slot.policy.spec.memory.policy != "None"
        asked = pod_memory(pod.pod)
        if not binds and any(name.startswith(HUGEPAGES_PREFIX) for name, _ in asked):
            return False  # nobody here counts them
        wants = pod_cpus(pod.pod) > 0 or (binds and bool(asked))
        return wants and self._selects(slot.policy, pod)
