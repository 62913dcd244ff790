"""The kernel model with the rule that a write to a cpuset waits for memory moves to end."""

import threading

from numapin_api.cpuset import CpuSet, MemSet
from numapin_campaigns.histories.kernel.watched import WatchedModel
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.write import Write

POD = "kubepods/pod1"


class FlushingKernel(WatchedModel):
    """As Linux up to 6.17: a write takes effect, and returns when no migration is under way."""

    def __init__(self) -> None:
        super().__init__(Version.V2, CpuSet(range(4)), MemSet((0, 1)))
        self.make(POD)
        self.is_flushed = threading.Event()
        self.has_effect_at_once = True
        self.waiting = threading.Semaphore(0)

    def write(self, write: Write) -> None:
        if self.has_effect_at_once:
            super().write(write)
        self.waiting.release()
        self.is_flushed.wait()
