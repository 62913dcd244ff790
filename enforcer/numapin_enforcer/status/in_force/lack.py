"""What the spec promises and the kernel does not have. Does no I/O."""

from dataclasses import dataclass

from numapin_api.conditions.reasons import Reason
from numapin_api.schema.plain import ContainerAssignment


@dataclass(frozen=True, slots=True)
class Lack:
    """What the spec promises and the kernel does not have.

    Attributes:
        subject: the container, or the cgroup.
        why: the rest of the sentence, with what to do.
        needs_help: whether a person must act.
    """

    subject: str
    reason: Reason
    why: str
    needs_help: bool = False

    def __str__(self) -> str:
        return f"{self.subject} {self.why}"


def name_of(one: ContainerAssignment) -> str:
    """The container, as people read it."""
    return f"container {one.namespace}/{one.pod}/{one.container}"
