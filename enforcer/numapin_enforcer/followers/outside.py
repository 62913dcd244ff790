"""Has containers outside of the kubelet's cgroups looked for."""

from dataclasses import dataclass

from numapin_enforcer.cgroups.kubepods.finder import KubepodsFinder
from numapin_enforcer.cgroups.naming import CgroupNaming
from numapin_enforcer.followers.containers import Containers
from numapin_enforcer.followers.observed import Observed
from numapin_enforcer.one_pass import Pass
from numapin_enforcer.runtime.outside_containers import OutsideContainers
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

    def deserted(self, naming: CgroupNaming) -> frozenset[str]:
        """The cgroups without processes whose containers run, by a list that is new enough."""
        paths = self.observed.population.deserted_at(self.finder.listed_at)
        running = self.finder.running
        return frozenset(path for path in paths if naming.parse(path).container_id in running)
