"""Has memory moved as a pass left it to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from numapin_enforcer.cgroups.kubepods.finder import KubepodsFinder
from numapin_enforcer.cgroups.memory.mover import MemoryMover
from numapin_enforcer.followers.runtime import RuntimeResources
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.plan.containment import Desired, restored_mems
from numapin_enforcer.status.obstacles import move_obstacles, moving
from numapin_enforcer.status.state import State


@dataclass(eq=False, slots=True)
class Memory:
    """Hands the mover the writes that move memory."""

    pods: KubepodsFinder
    runtime: RuntimeResources
    mover: MemoryMover
    _desired: Mapping[str, Desired] = field(default_factory=dict, init=False)
    _failed_passes: int = field(default=0, init=False)

    def follow(self, one: Pass) -> None:
        """Move what is left to move, and nothing while the node rests."""
        self._failed_passes = one.failed_passes
        pods, tree = self.pods.tree, one.result.tree
        if pods is None or one.naming is None:
            return
        if one.rests:
            self.mover.want((), pods.files)
        elif tree is not None:
            self._desired = one.result.desired
            self.mover.want(one.result.moves, pods.files)
            restored = restored_mems(tree, self._desired, self.mover.found_mems)
            self.mover.forget(restored - self.runtime.pending)

    def state(self) -> State:
        """What is being moved, and what could not be."""
        failed = move_obstacles(self.mover.failures, self._desired, self._failed_passes)
        return State(
            stalled=tuple(failed[0]),
            working=(*failed[1], *moving(self.mover.slow), *self.mover.obstacles()),
            finishes_soon=self.mover.finishes_soon,
        )
