"""One pass over the node: observe, plan, write, read back. Quick, and never waits."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_enforcer.cgroups.apply import Failure, apply
from numapin_enforcer.cgroups.naming import Layout
from numapin_enforcer.cgroups.snapshot import CgroupFiles, CgroupView
from numapin_enforcer.cgroups.tree import Cgroup, CgroupVanishedError, Tree, Write, parent
from numapin_enforcer.plan.desired import Desired, desire, owned_cpus, release
from numapin_enforcer.plan.drift import Drift
from numapin_enforcer.plan.writes import plan

MOST_ROUNDS: Final = 8
"""So often is a tree planned for in one pass while it keeps changing."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What the node is to be like: a spec in force, or (None) everything given back.

    `names` maps container ids to names, as the runtime lists them.
    """

    spec: NodeAssignmentSpec | None
    topology: Topology
    names: Mapping[str, str]

    def same_as(self, other: "Goal") -> bool:
        """Whether nothing of it was replaced, without comparing what is in it."""
        same_names = self.names is other.names
        return same_names and self.spec is other.spec and self.topology is other.topology

    def desired(self, tree: Tree, layout: Layout) -> dict[str, Desired]:
        """What each cgroup of `tree` should have."""
        if self.spec is None:
            return release(tree, self.topology)
        return desire(self.spec, tree, layout, self.names, self.topology)


@dataclass(frozen=True, slots=True)
class Enforced:
    """What a pass came to.

    Attributes:
        tree: the kernel's answer after the writes; None while there is no tree.
        desired: what each cgroup of `tree` should have; empty where nothing was to be enforced.
        failures: what the kernel refused.
        moves: writes left to do that move memory.
        drifts: what others had changed, and is set right.
        settled: whether the tree stood still long enough for every cgroup to be seen to.
    """

    tree: Tree | None = None
    desired: Mapping[str, Desired] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    moves: tuple[Write, ...] = ()
    drifts: tuple[Drift, ...] = ()
    settled: bool = True

    @property
    def complete(self) -> bool:
        """Whether every cgroup has the CPUs that it should have."""
        if self.tree is None or not self.desired:
            return True
        return self.settled and all(
            path == self.tree.root or one.effective_cpus == self.desired[path].cpus
            for path, one in self.tree.cgroups.items()
        )


class Enforcement:
    """Makes the kernel match a goal, pass by pass, and knows what was already right."""

    def __init__(self, files: CgroupFiles, view: CgroupView, layout: Layout) -> None:
        self._files, self._view, self._layout = files, view, layout
        self._right: dict[str, Desired] = {}
        self._still: tuple[Goal, Enforced] | None = None
        """The last pass, if there was nothing to do in it and nothing left to do."""

    def run(self, goal: Goal, *, everything: bool) -> Enforced:
        """Make one pass: plan and write until there is nothing left to write.

        What others do between two of our looks is in the later one, so it is planned for again.

        Args:
            goal: what the node is to be like.
            everything: read the whole tree, not only what events named.

        Raises:
            CgroupError: a file could not be read.
        """
        tree = self._view.observe(everything=everything)
        if self._still and self._still[1].tree is tree and goal.same_as(self._still[0]):
            return self._still[1]
        done = self._work(goal, tree)
        idle = done.complete and not done.moves and not done.drifts
        self._still = (goal, done) if idle and done.tree is not None else None
        return done

    def _work(self, goal: Goal, tree: Tree | None) -> Enforced:
        drifts: list[Drift] = []
        for _ in range(MOST_ROUNDS):
            if tree is None:
                break
            desired = goal.desired(tree, self._layout)
            drifts += self._drifts(tree, desired)
            steps = plan(tree, desired)
            outcome = apply(steps.quick, self._files)
            if not steps.quick:
                return Enforced(tree, desired, (), steps.moves, tuple(drifts))
            before, tree = tree, self._view.read_back(write.path for write in steps.quick)
            if tree and not outcome.complete and tree.cgroups.keys() == before.cgroups.keys():
                return Enforced(tree, desired, outcome.failed, steps.moves, tuple(drifts))
        if tree is None:
            self._right = {}
            return Enforced()
        desired = goal.desired(tree, self._layout)
        return Enforced(tree, desired, drifts=tuple(drifts), settled=False)

    def look(self, *, everything: bool) -> Enforced:
        """Make a pass that touches nothing; `everything` as in `run`.

        Raises:
            CgroupError: a file could not be read.
        """
        self._right, self._still = {}, None
        return Enforced(self._view.observe(everything=everything))

    def _drifts(self, tree: Tree, desired: Mapping[str, Desired]) -> Iterable[Drift]:
        """Cgroups that were right, are still meant to be so, and are not: others wrote them.

        What follows from a parent's drift is not told, nor what happens before any process runs
        in a cgroup: its maker may still be setting it up.
        """
        before, self._right = self._right, {}
        drifted: set[str] = set()
        owned = owned_cpus(desired.values())
        for path, meant in desired.items():
            cgroup = tree.cgroups[path]
            if _as_meant(cgroup, meant):
                self._right[path] = meant
            elif before.get(path) == meant and path != tree.root:
                drifted.add(path)
                if parent(path) not in drifted and self._inhabited(tree, path):
                    found = (cgroup.effective_cpus, cgroup.effective_mems)
                    sets = (found, (meant.cpus, meant.mems))
                    yield Drift(path, *sets, meant.container, owned, owns=bool(meant.owner))

    def _inhabited(self, tree: Tree, path: str) -> bool:
        with suppress(CgroupVanishedError):
            if self._files.has_tasks(path):
                return True
        return any(self._inhabited(tree, child) for child in tree.children.get(path, ()))


def _as_meant(cgroup: Cgroup, meant: Desired) -> bool:
    return (cgroup.effective_cpus, cgroup.effective_mems) == (meant.cpus, meant.mems)
