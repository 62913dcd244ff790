"""Has containers outside of the kubelet's cgroups looked for."""

from dataclasses import dataclass, replace

from numapin_enforcer.cgroups.kubepods.finder import KubepodsFinder
from numapin_enforcer.cgroups.naming import CgroupNaming
from numapin_enforcer.followers.containers import Containers
from numapin_enforcer.followers.observed import Observed
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.runtime.outside_containers import OutsideContainers
from numapin_enforcer.status.in_force.exclusivity import Evidence
from numapin_enforcer.status.state import State


@dataclass(eq=False, slots=True)
class Outside:
    """Locates them while a container of the spec is exclusive."""

    pods: KubepodsFinder
    containers: Containers
    observed: Observed
    finder: OutsideContainers

    def follow(self, one: Pass) -> None:
        """Look for their cgroups; have a newer list for a container without processes."""
        pods = self.pods.tree
        if pods is not None and one.result.tree is not None and not one.rests:
            self.finder.locate(
                self.containers.found.keys(),
                pods.outside,
                needed=one.enforced is not None and bool(one.enforced.exclusive_cpus),
                resynced=one.full_resync,
            )
        self.finder.need_since(self.observed.population.newest_deserted_at)

    def state(self) -> State:
        """Which containers may be anywhere."""
        return State(note=self.finder.note)

    def evidence(self, naming: CgroupNaming | None, known: Evidence) -> Evidence:
        """`known`, and which containers have no processes here, or a cgroup elsewhere."""
        population, finder = self.observed.population, self.finder
        deserted = frozenset(
            path
            for path in population.deserted_at(finder.listed_at)
            if naming is not None and naming.parse(path).container_id in finder.running
        )
        return replace(
            known,
            starting=(population.starting | population.deserted) - deserted,
            deserted=deserted,
            outside=finder.found,
            strays=finder.strays,
        )
