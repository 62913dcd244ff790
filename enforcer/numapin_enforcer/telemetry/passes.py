"""What passes did, and how long containers took through them. Does no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.status.summary import Summary


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass did, and what it left.

    Attributes:
        began_seconds: when it began; `ended_seconds`: when it ended.
        spec: what is enforced; None while nothing is.
        topology: the hardware.
        tree: the cgroups as read last; None if there are none.
        desired: what each of them must have.
        summary: what the kernel has; None if it could not be read.
        writes: how many writes the kernel made; `refused`: how many it refused.
        generation: of the newest spec; `received_seconds`: when it was received.
    """

    began_seconds: float
    ended_seconds: float
    spec: NodeAssignmentSpec | None
    topology: Topology
    tree: Tree | None = None
    desired: Mapping[str, Desired] = field(default_factory=dict)
    summary: Summary | None = None
    writes: int = 0
    refused: int = 0
    generation: int = 0
    received_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class InForce:
    """An exclusive container that has all of its CPUs since the end of a pass.

    `since_seconds` is when the pass began that saw it first, with its assignment.
    """

    container: ContainerAssignment
    since_seconds: float
    until_seconds: float


class InForceTimes:
    """How long each exclusive container took from its first pass to all of its CPUs."""

    def __init__(self, known: NodeAssignmentSpec | None) -> None:
        """Args: containers of `known` are not timed: they may have been in force before."""
        self._since: dict[tuple[str, str], float] = {}
        self._timed = {(one.pod_uid, one.container) for one in known.containers} if known else set()
        self._summary: Summary | None = None

    def update(self, done: Pass) -> list[InForce]:
        """Take in a pass; returns the containers that it brought into force."""
        if done.spec is None or done.summary is None or done.summary is self._summary:
            return []
        self._summary = done.summary
        named = {(one.pod_uid, one.container): one for one in done.spec.containers}
        found, present = list[InForce](), set[tuple[str, str]]()
        for one in done.summary.containers:
            key = one.pod_uid, one.container
            if key not in named or not named[key].exclusive:
                continue
            present.add(key)
            since = self._since.setdefault(key, done.began_seconds)
            if one.exclusive and key not in self._timed:
                self._timed.add(key)
                found.append(InForce(named[key], since, done.ended_seconds))
        self._since = {key: self._since[key] for key in present}
        self._timed &= named.keys()
        return found
