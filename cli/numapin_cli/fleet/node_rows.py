"""One line for each node: which are shown, in which order, and how many there are of each kind.

Does no I/O.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import CpuSet
from numapin_api.names import PAUSED
from numapin_cli.live.node_state import NodeState
from numapin_cli.near_names import did_you_mean
from numapin_cli.subcommand import CommandError

READY: Final = "Ready"
UNGOVERNED: Final = "no policy"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class NodeRow:
    """What a line says of a node; small, because a cluster has thousands.

    Attributes:
        exclusive: how many CPUs are exclusive to containers.
        free: how many CPUs are neither reserved nor exclusive.
        refused: how many pods are refused.
        drift: how many changes of others were reverted.
        has_pools: whether its CPUs are divided: a mode is in force.
        readiness: `True`, why not, or empty if no policy governs it.
        message: says more about that.
        node_mode: `Paused` or `Released` by the annotation of its Node; empty without it.
        document: the node for scripts; empty unless it was asked for.
    """

    name: str
    policy: str = ""
    mode: str = ""
    shared: CpuSet = CpuSet()
    reserved: CpuSet = CpuSet()
    exclusive: int = 0
    free: int = 0
    refused: int = 0
    drift: int = 0
    is_governed: bool = False
    has_pools: bool = False
    is_ready: bool = False
    readiness: str = ""
    message: str = ""
    node_mode: str = ""
    document: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, state: NodeState, *, with_document: bool = False) -> "NodeRow":
        """The line of a node."""
        pools = state.view.spec.pools if state.view else None
        shared = pools.shared if pools else CpuSet()
        reserved = pools.reserved if pools else CpuSet()
        ready = state.ready
        return cls(
            name=state.name,
            policy=state.policy,
            mode=state.mode,
            shared=shared,
            reserved=reserved,
            exclusive=state.exclusive,
            free=len(shared - reserved),
            refused=state.refused,
            drift=state.status.drift_count,
            is_governed=state.view is not None,
            has_pools=pools is not None,
            is_ready=state.is_ready,
            readiness=state.readiness,
            message=state.problem or (ready.message if ready else ""),
            node_mode=state.node_mode,
            document=state.to_json() if with_document else {},
        )

    def of_node(self, mode: str) -> "NodeRow":
        """The line with the mode of its Node."""
        document = {**self.document, "nodeMode": mode or None} if self.document else {}
        return replace(self, node_mode=mode, document=document)

    @property
    def is_paused(self) -> bool:
        """Whether a policy governs the node, and nothing of it is changed."""
        return self.is_governed and self.node_mode == PAUSED

    @property
    def state(self) -> str:
        """In which state the node is, as summaries count it."""
        if self.is_paused:
            return Reason.NODE_PAUSED
        if not self.is_governed:
            return self.node_mode or UNGOVERNED
        return READY if self.is_ready else self.readiness


_ORDERS: Final[Mapping[str, Callable[[NodeRow], Any]]] = {
    "name": lambda row: row.name,
    "policy": lambda row: row.policy,
    "exclusive": lambda row: -row.exclusive,
    "free": lambda row: -row.free,
    "refused": lambda row: -row.refused,
    "drift": lambda row: -row.drift,
    "ready": lambda row: (row.is_ready, not row.is_governed, row.readiness),
}
"""By what lines are sorted: the most first, and what is not Ready first.

See `usage.live.get.ORDERS`.
"""


def in_order(rows: Iterable[NodeRow], by: str) -> list[NodeRow]:
    """The lines, sorted; those alike by name."""
    order = _ORDERS[by]
    return sorted(rows, key=lambda row: (order(row), row.name))


def of_policy(rows: Sequence[NodeRow], policy: str, policies: Iterable[str]) -> list[NodeRow]:
    """The lines of the nodes that a policy governs.

    Args:
        rows: of all nodes.
        policy: its name.
        policies: the names of all policies, as far as they could be read.

    Raises:
        CommandError: there is no such policy.
    """
    known = {*policies, *(row.policy for row in rows if row.policy)}
    if policy not in known:
        raise CommandError(f"there is no policy {policy}; {did_you_mean(policy, known)}")
    return [row for row in rows if row.policy == policy]


@dataclass(frozen=True, slots=True)
class PolicySummary:
    """The nodes of one policy, or those that no policy governs, counted."""

    policy: str
    nodes: int
    ready: int
    exclusive: int
    free: int
    refused: int
    states: Mapping[str, int]
    """How many nodes are in each state, the most frequent first."""

    def to_json(self) -> Json:
        """The counts for scripts."""
        return {
            "policy": self.policy or None,
            "nodes": self.nodes,
            "ready": self.ready,
            "exclusiveCPUs": self.exclusive,
            "freeCPUs": self.free,
            "refused": self.refused,
            "states": dict(self.states),
        }


def summaries(rows: Iterable[NodeRow]) -> list[PolicySummary]:
    """The nodes counted, by policy."""
    by_policy: dict[str, list[NodeRow]] = {}
    for row in rows:
        by_policy.setdefault(row.policy, []).append(row)
    return [_summary(policy, by_policy[policy]) for policy in sorted(by_policy)]


def _summary(policy: str, rows: Sequence[NodeRow]) -> PolicySummary:
    return PolicySummary(
        policy=policy,
        nodes=len(rows),
        ready=sum(row.is_ready for row in rows),
        exclusive=sum(row.exclusive for row in rows),
        free=sum(row.free for row in rows),
        refused=sum(row.refused for row in rows),
        states=dict(Counter(row.state for row in rows).most_common()),
    )
