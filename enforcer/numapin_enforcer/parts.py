"""What the enforcer's loop is made of; `__main__` builds it."""

from dataclasses import dataclass

from numapin_enforcer.assignment.acceptance import Intake
from numapin_enforcer.assignment.keeper import Keeper
from numapin_enforcer.assignment.watch import Assignments
from numapin_enforcer.cfs_quota.updater import Limits
from numapin_enforcer.cgroups.kubepods import Host
from numapin_enforcer.cgroups.memory_mover import Mover
from numapin_enforcer.hardware.hotplug import Machine
from numapin_enforcer.health import Health
from numapin_enforcer.runtime.container_names import ContainerNames
from numapin_enforcer.runtime.updater import Recorder
from numapin_enforcer.status.events import EventTeller
from numapin_enforcer.status.publisher import Reporter
from numapin_enforcer.systemd.updater import SliceRecorder


@dataclass(frozen=True, slots=True)
class Parts:
    """What the loop is made of; whatever waits runs beside it and sets its wake event."""

    assignments: Assignments
    machine: Machine
    host: Host
    intake: Intake
    keeper: Keeper
    names: ContainerNames
    recorder: Recorder
    limits: Limits
    mover: Mover
    slices: SliceRecorder
    reporter: Reporter
    teller: EventTeller
    health: Health
