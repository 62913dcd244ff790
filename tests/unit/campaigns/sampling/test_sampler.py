"""What the sampler makes of sets that it reads."""

from pathlib import Path

from numapin_campaigns.sampling.assignment_versions import AssignmentVersion
from numapin_campaigns.sampling.cgroup_tree import Leaf, PodsTree
from numapin_campaigns.sampling.sampler import Reported, Sampler

OWNER = ("a", "main")
MASK = 0b10


class Tree(PodsTree):
    """Leaves with sets; each runs a task but those in `idle`."""

    def __init__(self) -> None:
        super().__init__(Path(), Path())
        self.leaves = {"poda/x": Leaf("poda/x", 0.0, "a", 0, "main")}
        self.sets = {"poda/x": MASK}
        self.idle: set[str] = set()

    def refresh(self, now: float, *, everything: bool) -> None:
        for path in self.sets.keys() - self.leaves.keys():
            self.leaves[path] = Leaf(path, now, path[3], 0, "main")

    def runs(self, leaf: Leaf) -> bool:
        return leaf.path not in self.idle

    def cpus(self, leaf: Leaf) -> int:
        return self.sets[leaf.path]

    def container(self, leaf: Leaf) -> str | None:
        return leaf.container

    def has_started(self, leaf: Leaf) -> bool:
        return self.runs(leaf)


def test_a_cgroup_with_a_task_on_exclusive_cpus_is_an_anomaly() -> None:
    tree, claim = Tree(), ((OWNER, MASK),)
    version = AssignmentVersion(0.0, 1, claim, claim, 1, 4)
    sampler = Sampler(tree, Reported(version))
    sampler.sample(1.0)
    tree.sets |= {"podb/y": 0b11, "podc/y": 0b01, "podd/y": 0, "poda/x/nested": MASK}
    tree.idle |= {"podb/y", "podd/y"}
    sampler.sample(2.0)
    assert sampler.samples().anomalies == ()
    tree.sets |= {"podb/y": 0b01, "podd/y": 0b01, "podc/y": 0b11}
    sampler.sample(3.0)
    (one,) = sampler.samples().anomalies
    assert (one.path, one.found, one.seen_at) == ("podc/y", 0b11, 2.0)
