"""Follows each pass for the start gate, and says what the status must say of it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from numapin_api.conditions.reasons import Reason
from numapin_api.schema.plain import StartGateStatus
from numapin_daemon.clock import Clock, SystemClock
from numapin_enforcer.cgroups.kubepods.finder import KubepodsFinder
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.runtime.container_index import Row
from numapin_enforcer.runtime.container_names import ContainerNames
from numapin_enforcer.runtime.nri.plugin import NriPlugin
from numapin_enforcer.start_gate.born_pinned import BornPinned
from numapin_enforcer.start_gate.gate import Gate, closed_by, ids_in_force
from numapin_enforcer.status.state import State

MOST_MESSAGE: Final = 1024


class Containers(Protocol):
    """The containers of the kubelet's cgroups."""

    pods: KubepodsFinder
    names: ContainerNames

    @property
    def found(self) -> Mapping[str, Row]:
        """Those that have a cgroup, by id."""


@dataclass(eq=False)
class StartGates:
    """Has the runtime ask while the spec has a start gate.

    Attributes:
        containers: those of the node.
        socket: the NRI socket of the runtime.
        folder: where it is kept which containers began pinned.
        wake: set to have a pass made.
    """

    containers: Containers
    socket: Path
    folder: Path
    wake: asyncio.Event
    clock: Clock = field(default_factory=SystemClock)
    gate: Gate = field(init=False)
    plugin: NriPlugin = field(init=False)
    _is_wanted: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        known, born = self.containers, BornPinned(self.folder)
        self.gate = Gate(known.pods, known.names, born, self.wake, self.clock)
        self.plugin = NriPlugin(self.socket, self.gate, self.wake.set, self.clock)

    def follow(self, one: Pass) -> None:
        """Let those who wait know; register with the runtime, or leave it."""
        self._is_wanted = closed_by(one)
        self.plugin.want(is_wanted=self._is_wanted)
        self.gate.passed(one)
        if one.full_resync and one.result.tree is not None:
            self.gate.forget_except(self.containers.found)

    def state(self) -> State:
        """Why containers do not wait, although the policy says so."""
        is_soon = self.plugin.is_connecting
        if is_soon or not (message := self.message):
            return State(finishes_soon=is_soon)
        note = f"containers may begin on shared CPUs: {message}"
        return State(note=note, reason=Reason.START_GATE_OPEN)

    @property
    def starts(self) -> Mapping[tuple[str, ...], float]:
        """How many containers began pinned, and how many did not."""
        return {(began,): count for began, count in self.gate.starts.items()}

    @property
    def message(self) -> str:
        """Why no container waits; empty if they do, or must not."""
        if not self._is_wanted:
            return ""
        if problem := self.plugin.problem:
            return problem[:MOST_MESSAGE]
        if self.gate.is_in_vain:
            return "a container waited in vain; none waits until the operator writes again"
        return ""

    def status(self, one: Pass) -> StartGateStatus | None:
        """What the status says after a pass; None if its spec has no start gate."""
        if not self._is_wanted:
            return None
        rows = ((id_, row.pod_uid) for id_, row in self.containers.found.items())
        in_force = ids_in_force(one, rows, one.names)
        born, starting = self.gate.born.ids, self.gate.starting()
        shared = {key for id_, key in in_force.items() if id_ not in born | starting}
        return StartGateStatus(
            active=self.plugin.about is not None,
            message=self.message or None,
            born_pinned=sum(1 for id_ in in_force if id_ in born),
            born_shared=tuple(sorted(shared)),
        )
