"""The nodes of one policy that change now, and those that wait for their turn. Does no I/O."""

from collections import OrderedDict
from dataclasses import dataclass, field


@dataclass(slots=True)
class Turns:
    """The nodes that one policy governs, as far as a turn concerns them.

    Limits are numbers of nodes; None: all nodes may change at the same time, and a stalled one
    stops none.

    Attributes:
        state: UID and generation of the policy to which the nodes change.
        changing: were given their turn, or have settings that their enforcer has not answered yet.
        admitted: those of them that change to `state`; the others change to an older one.
        stalled: became stalled by their turn.
        waiting: the first one is next.
        called: have been woken to take their turn.
    """

    state: tuple[str, int]
    changing: set[str] = field(default_factory=set)
    admitted: set[str] = field(default_factory=set)
    stalled: set[str] = field(default_factory=set)
    waiting: OrderedDict[str, None] = field(default_factory=OrderedDict)
    called: set[str] = field(default_factory=set)

    def note(self, node: str, *, is_changing: bool) -> None:
        """Take in whether a node's enforcer has yet to answer what is written."""
        if is_changing:
            self.changing.add(node)
        elif node not in self.admitted:
            self.changing.discard(node)

    def admit(self, node: str, limit: int | None) -> None:
        """Give a node its turn if there is room; else it waits to be called."""
        self.skip(node)
        if node in self.stalled:
            return
        if node in self.admitted or self._has_room(node, limit):
            self.change(node)
        else:
            self.waiting[node] = None

    def change(self, node: str) -> None:
        """A node changes to `state`."""
        self.changing.add(node)
        self.admitted.add(node)

    def call(self, limit: int | None) -> list[str]:
        """The nodes to wake, for which there is room now."""
        names: list[str] = []
        while (node := self._next(limit)) is not None:
            self.skip(node)
            self.called.add(node)
            names.append(node)
        return names

    def is_waiting(self, node: str) -> bool:
        """Whether a node waits, or has been woken and not yet taken its turn."""
        return node in self.waiting or node in self.called

    def skip(self, node: str) -> None:
        """A node does not wait any more."""
        self.called.discard(node)
        self.waiting.pop(node, None)

    def forget(self, node: str) -> None:
        """A node has changed, or is not one of the policy's any more."""
        self.skip(node)
        for nodes in (self.changing, self.admitted, self.stalled):
            nodes.discard(node)

    def _next(self, limit: int | None) -> str | None:
        """The first waiting node for which there is room."""
        first = next(iter(self.waiting), None)
        if first is None or self._has_room(first, limit):
            return first
        going_on = (node for node in self.changing if node in self.waiting)
        return next((node for node in going_on if self._has_room(node, limit)), None)

    def _has_room(self, node: str, limit: int | None) -> bool:
        """Whether a node may change now; one that changes already adds none to those that do."""
        if limit is None:
            return True
        busy = self.admitted if node in self.changing else self.changing
        return not self.stalled and len(busy | self.called) < limit


def node_limit(max_concurrent: str, nodes: int) -> int | None:
    """How many of a policy's nodes change at the same time; None: all of them.

    A percentage is rounded up, as that of a DaemonSet's maxUnavailable.
    """
    if max_concurrent.endswith("%"):
        limit = -(-nodes * int(max_concurrent[:-1]) // 100)
    else:
        limit = int(max_concurrent)
    return None if limit >= nodes else limit
