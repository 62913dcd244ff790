"""Make the folder in which the enforcer keeps its assignment full, or read-only."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from numapin_campaigns.faults.target import Inject, Target
from numapin_campaigns.frame.plan import Fault, Needs, PlannedFault

LASTING_SECONDS: Final = 2.0
"""How much longer than planned each fault lasts: long enough for a new exclusive pod."""

FULL: Final = Fault("FillStateFolder", every=65, needs=frozenset({Needs.THREAD}))
READ_ONLY: Final = Fault("ReadOnlyStateFolder", every=65, needs=frozenset({Needs.THREAD}))
FAULTS: Final = (FULL, READ_ONLY)


@contextmanager
def injector(target: Target) -> Iterator[Inject]:
    """Makes the folder unusable for some seconds."""
    folder = target.state_folder

    def inject(planned: PlannedFault) -> None:
        with folder.full() if planned.fault is FULL else folder.read_only():
            time.sleep(LASTING_SECONDS + planned.lasts_seconds)
        target.made[planned.fault.name] += 1

    yield inject
