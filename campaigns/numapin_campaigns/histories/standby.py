"""The standby of a node that a history is played on: it knows nothing but the saved spec."""

from collections.abc import Iterable

from numapin_api.topology import Topology
from numapin_campaigns.histories.actions import Assign
from numapin_campaigns.histories.kernel.restricted import Kernel
from numapin_enforcer.cgroups.naming import CgroupNaming
from numapin_enforcer.cgroups.tree_cache import TreeCache
from numapin_enforcer.cgroups.watch.inotify import Changes
from numapin_enforcer.reconciler import Reconciler
from numapin_enforcer.standby.goals import FenceGoal, NewCgroupsGoal


class _NoEvents:
    """The standby's watch: the events of the model are for the enforcer."""

    problem = ""

    def read(self) -> Changes:
        return Changes((), (), (), overflowed=False)

    def cover(self, paths: Iterable[str]) -> None:
        """Nothing to do."""


class Standby:
    """Fences the cgroups of one kernel; each pass is the first of a new process."""

    def __init__(self, kernel: Kernel, naming: CgroupNaming, topology: Topology) -> None:
        self._kernel, self._naming, self._topology = kernel, naming, topology

    def fence(self, assign: Assign, *, hung: bool) -> None:
        """Make one pass; `hung` while the enforcer has the lock and makes no progress."""
        reconciler = Reconciler(self._kernel, TreeCache(self._kernel, _NoEvents()), self._naming)
        goal = NewCgroupsGoal if hung else FenceGoal
        reconciler.converge(goal(assign.spec(), self._topology), full_resync=True)
