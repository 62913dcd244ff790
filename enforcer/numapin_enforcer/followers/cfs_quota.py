"""Has the CFS limits of exclusive containers removed, and those of all others restored."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from numapin_enforcer.cfs_quota.plan import (
    UnlimitedCgroups,
    cgroups_without_limit,
    other_containers,
)
from numapin_enforcer.cfs_quota.updater import CfsQuotaUpdater
from numapin_enforcer.cgroups.kubepods.finder import KubepodsFinder
from numapin_enforcer.cgroups.naming import CgroupNaming
from numapin_enforcer.followers.containers import Containers
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.runtime.interface import ContainerResources
from numapin_enforcer.status.state import State


@dataclass(eq=False, slots=True)
class CfsQuotas:
    """Hands the updater the cgroups that must have no limit after a pass."""

    pods: KubepodsFinder
    containers: Containers
    updater: CfsQuotaUpdater
    _desired: Mapping[str, Desired] = field(default_factory=dict, init=False)
    """After the pass before."""

    def follow(self, one: Pass) -> None:
        """Remove limits and restore others; if the node is left alone, neither."""
        pods, naming = self.pods.tree, one.naming
        if pods is None or naming is None:
            return
        if one.left_alone:
            self.updater.pause()
            return
        unlimited = UnlimitedCgroups()
        if not one.rests:
            unlimited = self._unlimited(one, naming)
            if self._is_resized(unlimited, one, pods.snapshot.pop_written()):
                self.updater.note_resize()
            if one.result.tree is not None:
                self._desired = one.result.desired
        full_resync = one.full_resync
        self.updater.want(unlimited, pods.files, naming.root, full_resync=full_resync)

    def state(self) -> State:
        """What keeps limits from being as they must be."""
        return State(working=self.updater.obstacles())

    def note_runtime_update(self, id_: str, resources: ContainerResources) -> None:
        """The runtime has written the limit that it has for a container."""
        if id_ in self.containers.found:
            path = self.containers.found[id_].path
            self.updater.note_runtime_update(path, resources.quota_us)

    def _unlimited(self, one: Pass, naming: CgroupNaming) -> UnlimitedCgroups:
        if one.enforced is None or one.enforced.cpu_quota != "Unlimited":
            return UnlimitedCgroups()
        found = self.containers.found
        assigned = [found[id_].path for id_ in sorted(self.containers.assigned)]
        paths = cgroups_without_limit(one.result.desired, naming)
        others = other_containers(assigned, paths, naming, one.names)
        return UnlimitedCgroups(paths, others, may_be_resized=True)

    def _is_resized(
        self, unlimited: UnlimitedCgroups, one: Pass, written: AbstractSet[str]
    ) -> bool:
        """Whether the kubelet may have set a limit: others wrote, or a container's CPUs differ."""
        before, now = self._desired, one.result.desired
        return any(
            path in written or (path in before and before[path].cpus != now[path].cpus)
            for path in unlimited.paths
        )
