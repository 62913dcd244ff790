"""What the parts of the enforcer have to say in the status. Does no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, auto

from numapin_api.conditions.reasons import Obstacle, Reason
from numapin_api.cpuset import CpuSet


class Part(IntEnum):
    """Who says it. The status follows this order: of several obstacles, the first one counts."""

    KUBELET = auto()
    ASSIGNMENT = auto()
    READING = auto()
    KUBEPODS = auto()
    MACHINE = auto()
    WRITES = auto()
    LOCAL_COPY = auto()
    LACKS = auto()
    MEMORY = auto()
    CFS_QUOTA = auto()
    SLICES = auto()
    PARTITIONS = auto()
    RUNTIME = auto()
    CONTAINERS = auto()
    OUTSIDE = auto()
    UNKNOWN_FIELDS = auto()
    UNREAD = auto()
    CHANGES = auto()
    CLAIMS = auto()
    PROCESS = auto()
    THREADS = auto()
    RETRIED_LACKS = auto()
    SAVING = auto()
    WATCH = auto()
    START_GATE = auto()
    DEVICES = auto()
    HOST_PROCESSES = auto()
    INTERRUPTS = auto()
    CACHE = auto()


@dataclass(frozen=True, slots=True)
class State:
    """What one part has to say at one moment.

    Attributes:
        stalled: what a person must repair, the worst first.
        working: what is not finished yet, or is retried.
        note: what the status of a healthy node says besides.
        reason: why that is to be known, for its `Ready`; None for no reason of its own.
        stale_cpus: cgroup to CPUs that this part may still give it, and must not.
        finishes_soon: something ends in a moment, and changes the status.
    """

    stalled: tuple[Obstacle, ...] = ()
    working: tuple[Obstacle, ...] = ()
    note: str = ""
    reason: Reason | None = None
    stale_cpus: Mapping[str, CpuSet] = field(default_factory=dict)
    finishes_soon: bool = False


States = Mapping[Part, State]


def in_order(states: States) -> list[State]:
    """The states in the order of the status."""
    return [states[part] for part in sorted(states)]
