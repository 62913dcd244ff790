"""How long containers took through passes. Does no I/O."""

from dataclasses import dataclass

from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.status.in_force.summary import Summary


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
        self._timed = {one.key for one in known.containers} if known else set()
        self._summary: Summary | None = None

    def update(self, done: Pass, summary: Summary | None) -> list[InForce]:
        """Take in a pass; returns the containers that it brought into force.

        `summary` is what the kernel has after it; None if it could not be read.
        """
        if done.spec is None or summary is None or summary is self._summary:
            return []
        self._summary = summary
        named = {one.key: one for one in done.spec.containers}
        found, present = list[InForce](), set[tuple[str, str]]()
        for one in summary.containers:
            key = one.key
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
