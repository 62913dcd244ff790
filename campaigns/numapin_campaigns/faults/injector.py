"""What injects faults of a chaos run."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from numapin_campaigns.chaos.plan import Fault, PlannedFault


@dataclass(frozen=True, slots=True)
class Injector:
    """Injects some kinds of faults, one fault after the other.

    Attributes:
        faults: the kinds.
        inject: returns when the fault is over.
    """

    faults: Collection[Fault]
    inject: Callable[[PlannedFault], None]
