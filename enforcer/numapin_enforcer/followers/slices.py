"""Has systemd know the cpusets of the kubelet's slices."""

from dataclasses import dataclass

from numapin_enforcer.followers.containers import Containers
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.status.state import State
from numapin_enforcer.systemd.interface import SliceSets
from numapin_enforcer.systemd.slices import qos_slices, slice_sets
from numapin_enforcer.systemd.updater import SliceUpdater


@dataclass(eq=False, slots=True)
class Slices:
    """Hands the updater the sets of the slices."""

    containers: Containers
    updater: SliceUpdater

    def follow(self, one: Pass) -> None:
        """Send the sets that the kernel has; none for slices that were released."""
        tree, naming = one.result.tree, one.naming
        if naming is None:
            return
        if one.left_alone:
            self.updater.pause()
        if tree is None:
            return
        if not one.rests:
            for drift in one.result.drifts:
                self.updater.note_external_change(drift.path)
        if one.enforced is not None:
            self.updater.want(slice_sets(one.result.desired, tree, naming))
        elif one.released and not self.containers.unnamed:
            self.updater.want(dict.fromkeys(qos_slices(tree, naming), SliceSets()))

    @property
    def may_write_older(self) -> bool:
        """Whether systemd may still write the sets that a slice had before."""
        return self.updater.may_write_older

    def state(self) -> State:
        """What systemd does not have yet."""
        return State(
            working=self.updater.obstacles(),
            note=self.updater.note,
            stale_cpus=self.updater.stale_cpus,
            finishes_soon=self.updater.finishes_soon,
        )
