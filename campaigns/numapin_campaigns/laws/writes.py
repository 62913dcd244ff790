"""No exclusive CPU is shared: a history of writes to the cgroups of one node.

Stated apart from the planner. I1: a write gives no CPU that a cgroup holds alone to another one,
until the cgroup has left that CPU. I2: no write is empty or names an offline CPU or a NUMA node
without memory. I3: what is written is effective. Does no I/O.
"""

from typing import Protocol

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.topology import Topology
from numapin_campaigns.laws.cgroup_tree import shared
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.cgroups.write import Write


class BrokenLawError(AssertionError):
    """A law does not hold; `law` is its name."""

    def __init__(self, law: str, what: str) -> None:
        super().__init__(f"{law}: {what}")
        self.law = law


class Kernel(Protocol):
    """What is written to."""

    def read(self) -> Tree:
        """Every cgroup now."""


class Writes:
    """Judges each write: `before` it is made, and `after`.

    `held`: the CPUs that cgroups have alone, and lose to no other one before they leave them.
    """

    def __init__(self, kernel: Kernel, topology: Topology) -> None:
        self._kernel, self._topology = kernel, topology
        self.held: dict[str, CpuSet] = {}
        self._shared: set[tuple[str, str, int]] = set()

    def counts(self, owner: str, other: str, cpu: int) -> bool:
        """Whether it is against the law that `other` has a CPU that `owner` holds and still has."""
        del owner, other, cpu
        return True

    def before(self, write: Write) -> None:
        """Check a write (I2), and remember what is shared before it."""
        value, topology = write.value, self._topology
        if isinstance(value, CpuSet) and not (value and value <= topology.online):
            raise BrokenLawError("I2", str(write))
        if isinstance(value, MemSet) and not (value and value <= topology.mems):
            raise BrokenLawError("I2", str(write))
        self._shared = self.sharing(self._kernel.read())

    def after(self, write: Write) -> None:
        """Judge the tree after a write (I1). A cgroup that has left a CPU holds it no more."""
        tree = self._kernel.read()
        if new := self.sharing(tree) - self._shared:
            raise BrokenLawError("I1", f"{write} made shared: {sorted(new)[:3]}; {self.held}")
        self.held = self._still_had(tree)

    def sharing(self, tree: Tree) -> set[tuple[str, str, int]]:
        """Holder, other cgroup and CPU, wherever one is shared that must not be."""
        has = {path: one.effective_cpus for path, one in tree.cgroups.items()}
        return {
            (one.owner, one.other, cpu)
            for one in shared(self._still_had(tree), has)
            for cpu in one.cpus
            if self.counts(one.owner, one.other, cpu)
        }

    def check_effect(self, write: Write, tree: Tree) -> None:
        """I3, in the tree after a write."""
        found = tree.cgroups[write.path]
        if isinstance(write.value, CpuSet) and found.effective_cpus != write.value:
            raise BrokenLawError("I3", f"{write} has the effect {found.effective_cpus}")
        if isinstance(write.value, MemSet) and found.effective_mems != write.value:
            raise BrokenLawError("I3", f"{write} has the effect {found.effective_mems}")

    def _still_had(self, tree: Tree) -> dict[str, CpuSet]:
        return {
            path: cpus & tree.cgroups[path].effective_cpus
            for path, cpus in self.held.items()
            if path in tree.cgroups
        }
