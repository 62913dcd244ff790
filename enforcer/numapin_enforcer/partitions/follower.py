"""Makes partitions after a pass, and ends them before one that changes their CPUs."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from numapin_api.conditions.reasons import Obstacle, Reason
from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import IsolationStatus, NodeAssignmentSpec
from numapin_api.text import first_texts
from numapin_daemon.clock import Clock, SystemClock
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.kubepods.finder import KubepodsFinder, PodTree
from numapin_enforcer.cgroups.memory.writes_during_moves import MoveGate
from numapin_enforcer.cgroups.naming import Kind
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.partitions.files import KernelPartitions, PartitionFiles, read_states
from numapin_enforcer.partitions.partitioning import Partitioning, message_of
from numapin_enforcer.partitions.plan import KINDS, State
from numapin_enforcer.partitions.saved import FoundPartitions
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.status.conditions import SHOWN
from numapin_enforcer.status.state import State as Said

LOG: Final = logging.getLogger(__name__)

NEEDS: Final = "partitions of containers need cgroup v2 and Linux 6.7 or newer"
TRIES_TO_STALL: Final = 5
Key = tuple[str, str]
"""The pod's UID and the container's name."""


@dataclass(eq=False)
class Partitions:
    """Has exclusive containers be partitions while the spec says so.

    Attributes:
        kubepods: the kubelet's cgroups.
        gate: says whether memory is being moved: then nothing is written.
        state_dir: where it is kept what others had set before.
        kernel: the release of this node's kernel, for messages.
    """

    kubepods: KubepodsFinder
    gate: MoveGate
    state_dir: Path
    kernel: str
    clock: Clock = field(default_factory=SystemClock)
    files_of: Callable[[Path], PartitionFiles] = KernelPartitions
    """Opens the files of a mount of cgroup v2."""
    on_lost: Callable[[], object] = field(default=bool, init=False)
    """Called for each partition that others have ended."""
    _work: Partitioning | None = field(default=None, init=False)
    """Of the tree that is open."""
    _tree: PodTree | None = field(default=None, init=False)
    _keys: dict[str, Key] = field(default_factory=dict, init=False)
    """The container of each cgroup that was last wanted as a partition."""
    _problem: Obstacle | None = field(default=None, init=False)
    _isolated: CpuSet | None = field(default=None, init=False)
    """What the kernel isolates; None unless the spec asks for partitions."""

    def prepare(self, one: Pass) -> None:
        """Before a pass: end the partitions whose containers must have other CPUs, or none."""
        if self._work is None or not self._work.made or one.conflict or one.spec is None:
            return
        wanted = _by_key(one.spec) if one.enforces else {}
        kept = {
            path: state
            for path, state in self._work.made.items()
            if wanted.get(self._keys.get(path, ("", ""))) == state
        }
        if kept != self._work.made:
            self._bring(self._work, kept)

    def follow(self, one: Pass) -> None:
        """Make the partitions that the pass has brought about, and end all others."""
        tree = self.kubepods.tree
        if tree is None or one.naming is None or one.left_alone or one.conflict:
            return
        asks = one.enforced is not None and one.enforced.isolation in KINDS
        work, self._problem = self._opened(tree), None
        if asks and not self._is_supported(tree, work):
            had = f"this node has cgroup {tree.mounts.version.name.lower()}, Linux {self.kernel}"
            message = f"{NEEDS}; {had}. CPUs are kept apart by cpusets alone"
            self._problem = Obstacle(Reason.PARTITIONS_UNSUPPORTED, message)
        elif asks or work.ours or work.refused:
            self._bring(work, self._wanted(one, tree, work) if asks else {})
        self._isolated = work.files.isolated() if asks else None

    def state(self) -> Said:
        """Why exclusive containers are no partitions, although the policy says so."""
        if self._problem is not None:
            return Said(stalled=(self._problem,))
        refused = self._work.refused if self._work is not None else {}
        if not refused:
            return Said()
        shown = [f"{path}: {message_of(one)}" for path, one in sorted(refused.items())]
        message = f"CPUs are kept apart by cpusets alone: {first_texts(shown, SHOWN, '; ')}"
        obstacle = Obstacle(Reason.PARTITION_REFUSED, message)
        if max(one.tries for one in refused.values()) >= TRIES_TO_STALL:
            return Said(stalled=(obstacle,))
        return Said(working=(obstacle,))

    def status(self) -> IsolationStatus | None:
        """What the kernel says; None unless the spec asks for partitions."""
        if self._isolated is None or self._work is None:
            return None
        cpus = CpuSet.union(one.exclusive for one in self._work.made.values())
        return IsolationStatus(partitions=cpus, isolated=self._isolated)

    def _opened(self, tree: PodTree) -> Partitioning:
        """The work on a tree; with what an earlier process has left there."""
        if self._work is None or self._tree is not tree:
            files = self.files_of(tree.mounts.cpuset)
            work = Partitioning(files, FoundPartitions(self.state_dir), self.clock)
            if tree.mounts.version is Version.V2 and tree.snapshot.tree is not None:
                work.adopt(tree.snapshot.tree.cgroups)
            self._work, self._tree = work, tree
        return self._work

    def _is_supported(self, tree: PodTree, work: Partitioning) -> bool:
        is_v2 = tree.mounts.version is Version.V2
        return is_v2 and bool(read_states(work.files, (tree.naming.root,)))

    def _wanted(self, one: Pass, tree: PodTree, work: Partitioning) -> dict[str, State]:
        """The containers that have just their CPUs, by cpusets of their own."""
        assert one.enforced is not None
        assert one.result.tree is not None
        kind, cgroups = KINDS[one.enforced.isolation], one.result.tree.cgroups
        wanted: dict[str, State] = {}
        self._keys, taken = {}, CpuSet()
        for path in sorted(one.result.desired, key=lambda path: (path not in work.made, path)):
            meant = one.result.desired[path]
            if not meant.exclusive or tree.naming.parse(path).kind is not Kind.CONTAINER:
                continue
            has = cgroups[path]
            if meant.container is None or not (meant.cpus == has.cpus == has.effective_cpus):
                continue
            if meant.cpus & taken:  # of a container of the pod that starts or ends beside it
                continue
            wanted[path], self._keys[path] = State(meant.cpus, kind), meant.container.key
            taken |= meant.cpus
        return wanted

    def _bring(self, work: Partitioning, wanted: Mapping[str, State]) -> None:
        tree = self._tree
        if tree is None:
            return
        with self.gate.lock:
            if self.gate.is_moving:
                return
            try:
                is_written, changed = work.bring(wanted)
            except (CgroupError, OSError) as error:
                message = f"partitions could not be made: {error}"
                self._problem = Obstacle(Reason.PARTITION_REFUSED, message)
                is_written, changed = True, frozenset()
        if is_written:
            tree.snapshot.observe(full_resync=True)
        for path in sorted(changed):
            LOG.warning("others have ended a partition; it is made again", extra={"cgroup": path})
            self.on_lost()


def _by_key(spec: NodeAssignmentSpec) -> dict[Key, State]:
    """What each exclusive container of a spec must be, if it asks for partitions."""
    kind = KINDS.get(spec.isolation)
    if kind is None:
        return {}
    return {one.key: State(one.cpus, kind) for one in spec.containers if one.exclusive}
