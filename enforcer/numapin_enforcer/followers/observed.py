"""What is read after a pass, for the status alone: processes, claims, unbound memory."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from numapin_api.conditions.reasons import Reason
from numapin_daemon.clock import Clock, SystemClock
from numapin_enforcer.cgroups.kubepods.finder import KubepodsFinder
from numapin_enforcer.cgroups.memory.promised import PromisedMemory
from numapin_enforcer.cgroups.memory.stat_files import read_available
from numapin_enforcer.cgroups.memory.unbound import UnboundMemoryReader
from numapin_enforcer.node.dra_claims import DraClaims
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.status.in_force.memory import bound_pods, container_cgroups
from numapin_enforcer.status.in_force.population import Population
from numapin_enforcer.status.state import State


@dataclass(eq=False, slots=True)
class Observed:
    """Looks for what no event announces."""

    pods: KubepodsFinder
    claims: DraClaims
    clock: Clock = field(default_factory=SystemClock)
    sysfs: Path = Path("/sys")
    population: Population = field(default_factory=Population, init=False)
    unbound: UnboundMemoryReader = field(default_factory=UnboundMemoryReader, init=False)
    promised: PromisedMemory = field(init=False)

    def __post_init__(self) -> None:
        self.promised = PromisedMemory(partial(read_available, self.sysfs))

    def follow(self, one: Pass) -> None:
        """Look, if there are cgroups of a spec that was accepted."""
        self.claims.observe(full_resync=one.resynced)
        pods, tree, naming = self.pods.tree, one.result.tree, one.naming
        if tree is None or pods is None or naming is None:
            self.population.forget()
            return
        if one.spec is None:
            return
        now_seconds, desired, files = self.clock.monotonic(), one.wanted, pods.files
        if one.resynced and len(one.topology.numa_nodes) > 1:
            bound = bound_pods(one.spec, tree, desired)
            self.unbound.look(tree, naming, bound, files.read_numa_stat, now_seconds)
            if not one.audits:
                cgroups = container_cgroups(tree, desired)
                self.promised.look(one.spec, cgroups, naming, files.read_numa_stat, now_seconds)
        resynced = one.resynced
        self.population.update(tree, desired, files.has_tasks, now_seconds, resynced=resynced)

    def state(self) -> State:
        """Which claims are left out, and of which NUMA nodes promised memory is missing."""
        missing = self.promised.note
        note = "; ".join(filter(None, (self.claims.problem, missing)))
        return State(note=note, reason=Reason.PROMISED_MEMORY_IN_USE if missing else None)
