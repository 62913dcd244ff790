"""All followers of a pass, and their order."""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from numapin_api.schema.plain import HostProcessesStatus, InterruptsStatus, SystemStatus
from numapin_enforcer.followers.cfs_quota import CfsQuotas
from numapin_enforcer.followers.changes import Changes
from numapin_enforcer.followers.containers import Containers
from numapin_enforcer.followers.memory import Memory
from numapin_enforcer.followers.observed import Observed
from numapin_enforcer.followers.outside import Outside
from numapin_enforcer.followers.runtime import RuntimeResources
from numapin_enforcer.followers.slices import Slices
from numapin_enforcer.host.follower import HostProcesses
from numapin_enforcer.interrupts.follower import Interrupts
from numapin_enforcer.partitions.follower import Partitions
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.plan.drift import Cause
from numapin_enforcer.podresources.follower import Devices
from numapin_enforcer.resctrl.follower import Caches
from numapin_enforcer.start_gate.follower import StartGates
from numapin_enforcer.status.facts import Facts
from numapin_enforcer.status.state import Part, State, States


class Follower(Protocol):
    """Acts on each pass, and returns at once: what takes long is done in the background."""

    def follow(self, one: Pass) -> None:
        """Act on a pass, also on one that could read nothing."""
        ...

    def state(self) -> State:
        """What the status must say of it now."""
        ...


@dataclass(eq=False, slots=True)
class Followers:
    """Each follower may use what those before it have made of the same pass."""

    changes: Changes
    containers: Containers
    cfs_quota: CfsQuotas
    runtime: RuntimeResources
    memory: Memory
    slices: Slices
    partitions: Partitions
    observed: Observed
    outside: Outside
    devices: Devices
    start_gates: StartGates
    host: HostProcesses
    interrupts: Interrupts
    caches: Caches

    in_order: dict[Part, Follower] = field(init=False)
    """All of them, in the order in which they follow."""

    def __post_init__(self) -> None:
        self.runtime.updater.on_update = self.cfs_quota.note_runtime_update
        self.start_gates.gate.on_pod = self.devices.kubelet.learn
        self.host.on_drift = self.changes.note
        self.interrupts.updater.on_foreign = partial(self.changes.count.add, Cause.INTERRUPT)
        self.caches.updater.on_foreign = partial(self.changes.count.add, Cause.CACHE)
        self.partitions.on_lost = partial(self.changes.count.add, Cause.PARTITION)
        self.in_order = {
            Part.CHANGES: self.changes,
            Part.CONTAINERS: self.containers,
            Part.CFS_QUOTA: self.cfs_quota,
            Part.RUNTIME: self.runtime,
            Part.MEMORY: self.memory,
            Part.SLICES: self.slices,
            Part.PARTITIONS: self.partitions,
            Part.CLAIMS: self.observed,
            Part.OUTSIDE: self.outside,
            Part.DEVICES: self.devices,
            Part.START_GATE: self.start_gates,
            Part.HOST_PROCESSES: self.host,
            Part.INTERRUPTS: self.interrupts,
            Part.CACHE: self.caches,
        }

    def prepare(self, one: Pass) -> None:
        """Have those act that must before the cgroups are written."""
        self.partitions.prepare(one)

    def follow(self, one: Pass) -> None:
        """Have all follow a pass."""
        for follower in self.in_order.values():
            follower.follow(one)

    def states(self) -> States:
        """What each has to say."""
        return {part: follower.state() for part, follower in self.in_order.items()}

    def recheck_seconds(self) -> list[float]:
        """After how many seconds a pass is needed although no event comes."""
        patience_seconds = self.containers.names.patience_seconds
        waits = (patience_seconds, self.observed.population.recheck_seconds)
        return [seconds for seconds in waits if seconds is not None]

    def awaits_others(self, one: Pass) -> bool:
        """Whether a release has not ended: the runtime or systemd may still write a set of before.

        Either does so with any update by the kubelet, until it has the new one; the pass after
        finds what it wrote.
        """
        if not one.released:
            return False
        others = self.containers.unnamed or self.runtime.pending or self.slices.may_write_older
        return bool(others)

    def known(self, one: Pass) -> Pass:
        """A pass that begins, with what followers know for it."""
        return replace(
            one,
            names=self.containers.names.known,
            found_mems=self.memory.mover.found_mems,
            by_runtime=self.runtime.growable,
        )

    def facts(self, one: Pass, facts: Facts) -> Facts:
        """The facts after a pass, with what followers know."""
        content = replace(
            facts.content,
            runtime=self.containers.runtime,
            claims=self.observed.claims.on(one.topology.online),
            devices=self.devices.status,
            unbound_memory=self.observed.unbound.found,
            drift_count=self.changes.count.total,
            drift_causes=self.changes.count.causes,
            start_gate=self.start_gates.status(one),
            system=system_status(self.host.status(), self.interrupts.status()),
            cache=self.caches.status(),
            isolation=self.partitions.status(),
        )
        evidence = self.outside.evidence(one.naming, facts.evidence)
        return replace(
            facts, content=content, evidence=evidence, running=self.outside.finder.running
        )


def system_status(
    processes: HostProcessesStatus | None, interrupts: InterruptsStatus | None
) -> SystemStatus | None:
    """What the status says of what keeps off exclusive CPUs; None if nothing must."""
    found = SystemStatus(processes, interrupts)
    return found if found != SystemStatus() else None
