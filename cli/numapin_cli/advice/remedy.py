"""What would help a pod, each as a value that a person and a script can follow.

Does no I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numapin_api.nodeassignment import ContainerAssignment
from numapin_cli.advice.fate import gives

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change after which the pod gets CPUs or memory of its own, as a plan has shown.

    Attributes:
        kind: `again` (create the pod again), `release` (end other pods, then create it again),
            `node` (create it on another node), `size` (create it with other requests) or `policy`
            (edit the policy).
        text: what to do.
        entries: what the pod's containers get then.
        change: the same for scripts.
        note: on what it depends besides; empty if on nothing.
    """

    kind: str
    text: str
    entries: tuple[ContainerAssignment, ...]
    change: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

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
        return found | ({"note": self.note} if self.note else {})
