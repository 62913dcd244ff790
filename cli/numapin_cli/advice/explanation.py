"""The answer to `numapin explain`, as a value for drawings and for scripts.

Does no I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numapin_cli.advice.remedies.releases import Holder
from numapin_cli.advice.remedies.remedy import Remedy

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """One fact about a subject."""

    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The state of a pod, node or policy, the reasons for it, and what would help.

    Attributes:
        subject: what is explained, such as `pod default/a`.
        verdict: in a few words, how it stands.
        is_well: whether nothing is missing.
        node: the node in question; empty if there is none.
        policy: the governing policy; empty if there is none.
        reason: one CamelCase word; empty if all is well.
        why: the reasons as sentences, the planner's numbers among them.
        facts: more about it: containers, nodes, conditions.
        in_the_way: who has the CPUs and the memory of the node.
        remedies: what would help; each was tried.
        tried: how many plans were made, by what was changed.
        stopped: whether the limit of plans was reached, so that not everything was tried.
        limits: what was not tried, as sentences.
        assumed: what the answer takes for granted, as sentences.
    """

    subject: str
    verdict: str
    is_well: bool
    node: str = ""
    policy: str = ""
    reason: str = ""
    why: tuple[str, ...] = ()
    facts: tuple[Line, ...] = ()
    in_the_way: tuple[Holder, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    tried: Mapping[str, int] = field(default_factory=dict)
    stopped: bool = False
    limits: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()

    def to_json(self) -> Json:
        """The answer for scripts."""
        return {
            "subject": self.subject,
            "verdict": self.verdict,
            "ok": self.is_well,
            "node": self.node or None,
            "policy": self.policy or None,
            "reason": self.reason or None,
            "why": list(self.why),
            "facts": [{"subject": one.subject, "text": one.text} for one in self.facts],
            "inTheWay": [_holder(one) for one in self.in_the_way],
            "remedies": [one.to_json() for one in self.remedies],
            "tried": dict(self.tried),
            "triedAll": not self.stopped,
            "notTried": list(self.limits),
            "assumed": list(self.assumed),
        }


def _holder(one: Holder) -> Json:
    return {
        "pod": one.name,
        "cpus": str(one.cpus),
        "numaNodes": str(one.mems),
        "memoryBytes": one.memory_bytes,
    }
