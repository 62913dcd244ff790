"""What the enforcer's loop is made of; `__main__` builds it."""

from dataclasses import dataclass

from numapin_enforcer.assignment.acceptance import Acceptance
from numapin_enforcer.assignment.local_copy import LocalCopyWriter
from numapin_enforcer.assignment.watch import AssignmentWatch
from numapin_enforcer.cfs_quota.updater import CfsQuotaUpdater
from numapin_enforcer.cgroups.kubepods import Host
from numapin_enforcer.cgroups.memory_mover import Mover
from numapin_enforcer.hardware.hotplug import Machine
from numapin_enforcer.health import Health
from numapin_enforcer.runtime.container_names import ContainerNames
from numapin_enforcer.runtime.updater import RuntimeUpdater
from numapin_enforcer.status.events import EventTeller
from numapin_enforcer.status.publisher import Reporter
from numapin_enforcer.systemd.updater import SliceUpdater


@dataclass(frozen=True, slots=True)
class Parts:
    """What the loop is made of; whatever waits runs beside it and sets its wake event."""

    assignments: AssignmentWatch
    machine: Machine
    host: Host
    intake: Acceptance
    keeper: LocalCopyWriter
    names: ContainerNames
    recorder: RuntimeUpdater
    limits: CfsQuotaUpdater
    mover: Mover
    slices: SliceUpdater
    reporter: Reporter
    teller: EventTeller
    health: Health
