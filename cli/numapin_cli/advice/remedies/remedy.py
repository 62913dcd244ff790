"""A change that would help a pod, for people and for scripts.

Does no I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numapin_api.schema.plain_assignment import ContainerAssignment
from numapin_cli.advice.fate import Fate, gives

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change after which the pod gets CPUs or memory of its own, as a plan has shown.

    Attributes:
        kind: `again` (create the pod again), `release` (end other pods, then create it again),
            `node` (create it on another node), `size` (other requests) or `policy` (edit the
            policy).
        text: what to do.
        entries: what the pod's containers get then.
        change: the same for scripts.
        note: a further condition; empty if there is none.
        moves: see `Fate.moves`.
    """

    kind: str
    text: str
    entries: tuple[ContainerAssignment, ...]
    change: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    moves: tuple[str, ...] = ()

    @classmethod
    def by(
        cls, kind: str, text: str, fate: Fate, change: Mapping[str, Any] | None = None
    ) -> "Remedy":
        """A change and the fate that it leads to."""
        return cls(kind, text, fate.entries, change or {}, moves=fate.moves)

    @property
    def notes(self) -> tuple[str, ...]:
        """Further conditions, and what the operator does first."""
        moves = (f"the operator {line}" for line in self.moves)
        return (*filter(None, (self.note,)), *moves)

    @property
    def effect(self) -> str:
        """What the pod's containers get."""
        return gives(self.entries)

    def to_json(self) -> Json:
        """The remedy for scripts."""
        got = [
            {"container": one.container, "cpus": str(one.cpus), "mems": str(one.mems)}
            for one in self.entries
        ]
        found: Json = {"kind": self.kind, "text": self.text, **self.change, "gives": got}
        found |= {"moves": list(self.moves)} if self.moves else {}
        return found | ({"note": self.note} if self.note else {})
