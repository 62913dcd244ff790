"""One pass over the node: observe, plan, write, read back. Quick, and never waits."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_enforcer.apply import Failure, apply
from numapin_enforcer.cgroups import Cgroup, CgroupVanishedError, Tree, Write, parent
from numapin_enforcer.desired import Desired, desire, release
from numapin_enforcer.drift import Drift
from numapin_enforcer.layout import Layout
from numapin_enforcer.plan import plan
from numapin_enforcer.view import CgroupFiles, CgroupView


@dataclass(frozen=True, slots=True)
class Goal:
    """What the node is to be like: a spec in force, or (None) everything given back.

    `names` maps container ids to names, as the runtime lists them.
    """

    spec: NodeAssignmentSpec | None
    topology: Topology
    names: Mapping[str, str]

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
        desired: what each cgroup should have.
        written: how many writes were made.
        failures: what the kernel refused.
        moves: writes left to do that move memory.
        drifts: what others had changed, and is set right.
    """

    tree: Tree | None = None
    desired: Mapping[str, Desired] = field(default_factory=dict)
    written: int = 0
    failures: tuple[Failure, ...] = ()
    moves: tuple[Write, ...] = ()
    drifts: tuple[Drift, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every cgroup is as it should be, memory that is to be moved aside."""
        if self.tree is None:
            return True
        found = self.tree.cgroups
        return all(
            found[path].effective_cpus == wanted.cpus
            for path, wanted in self.desired.items()
            if path in found and path != self.tree.root
        )


class Enforcement:
    """Makes the kernel match a goal, pass by pass, and knows what was already right."""

    def __init__(self, files: CgroupFiles, view: CgroupView, layout: Layout) -> None:
        self._files, self._view, self._layout = files, view, layout
        self._settled: dict[str, Desired] = {}

    def run(self, goal: Goal, *, everything: bool) -> Enforced:
        """Make one pass.

        Args:
            goal: what the node is to be like.
            everything: read the whole tree, not only what events named.

        Raises:
            CgroupError: a file could not be read.
        """
        tree = self._view.observe(everything=everything)
        if tree is None:
            self._settled.clear()
            return Enforced()
        desired = goal.desired(tree, self._layout)
        drifts = tuple(self._drifts(tree, desired))
        steps = plan(tree, desired)
        outcome = apply(steps.quick, self._files)
        if steps.quick:
            tree = self._view.read_back(write.path for write in steps.quick)
        self._settle(tree, desired)
        return Enforced(tree, desired, len(outcome.made), outcome.failed, steps.moves, drifts)

    def look(self) -> Enforced:
        """Make a pass that touches nothing.

        Raises:
            CgroupError: a file could not be read.
        """
        self._settled.clear()
        return Enforced(self._view.observe(everything=True))

    def _settle(self, tree: Tree | None, desired: Mapping[str, Desired]) -> None:
        found = tree.cgroups if tree else {}
        self._settled = {
            path: wanted
            for path, wanted in desired.items()
            if path in found and _as_meant(found[path], wanted)
        }

    def _drifts(self, tree: Tree, desired: Mapping[str, Desired]) -> Iterable[Drift]:
        """Cgroups that were right, are still meant to be so, and are not: others wrote them.

        What follows from a parent's drift is not told, nor what happens before any process runs
        in a cgroup: its maker may still be setting it up.
        """
        drifted: set[str] = set()
        for path, meant in self._settled.items():
            cgroup = tree.cgroups.get(path)
            if cgroup is None or path == tree.root or desired[path] != meant:
                continue
            if _as_meant(cgroup, meant):
                continue
            drifted.add(path)
            if parent(path) not in drifted and self._inhabited(tree, path):
                yield Drift(
                    path,
                    (cgroup.effective_cpus, cgroup.effective_mems),
                    (meant.cpus, meant.mems),
                    meant.container,
                )

    def _inhabited(self, tree: Tree, path: str) -> bool:
        with suppress(CgroupVanishedError):
            if self._files.has_tasks(path):
                return True
        return any(self._inhabited(tree, child) for child in tree.children.get(path, ()))


def _as_meant(cgroup: Cgroup, meant: Desired) -> bool:
    return (cgroup.effective_cpus, cgroup.effective_mems) == (meant.cpus, meant.mems)
