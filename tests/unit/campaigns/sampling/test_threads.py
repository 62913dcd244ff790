"""What is made of the masks of threads."""

from collections.abc import Iterable
from pathlib import Path

from numapin_campaigns.sampling.cgroup_tree import Leaf, PodsTree
from numapin_campaigns.sampling.threads import LOOK_SECONDS, ThreadLooks, parse_status

KEY = ("a", "main")
OWN, SHARED, ALL = 0b10, 0b01, 0b11
OWNER, OTHER = Leaf("poda/x", 0.0, "a", 0, "main"), Leaf("podb/y", 0.0, "b", 0, "main")
NESTED = Leaf("poda/x/nested", 0.0, "a", 0)


class World(PodsTree):
    """The processes of each cgroup are its place in the list; each has one thread."""

    def __init__(self, root: Path = Path()) -> None:
        super().__init__(root, root)
        self.leaves = {one.path: one for one in (OWNER, OTHER, NESTED)}
        self.masks = {"poda/x": ALL, "podb/y": ALL, "poda/x/nested": ALL}
        self.looks = ThreadLooks(self, self.threads)

    def pids(self, leaf: Leaf) -> list[int]:
        return [list(self.leaves).index(leaf.path)]

    def threads(self, pids: Iterable[int]) -> list[tuple[str, int]]:
        return [("iou-wrk-7", list(self.masks.values())[pid]) for pid in pids]

    def look(self, now: float, other: int = SHARED, owned: bool = True) -> list[tuple[float, str]]:
        owners = [(KEY, OWNER, OWN)] if owned else []
        found = self.looks.look(now, owners, [(OWNER, OWN), (NESTED, OWN), (OTHER, other)])
        return [(one.seen_at, f"{one.path} {one.found} {one.other}") for one, _ in found]


FOUND = f"podb/y {ALL} iou-wrk-7"


def test_a_thread_beyond_the_set_of_its_cgroup_is_found_again_and_again() -> None:
    world = World()
    assert world.look(1.0) == [(1.0, FOUND)]
    assert world.look(1.0 + LOOK_SECONDS / 2) == []
    assert world.look(2.0) == [(1.0, FOUND)], "seen for a second"
    assert world.look(5.0, owned=False) == []
    assert world.look(6.0) == [(5.0, FOUND)], "nothing was exclusive, so nobody had to look"
    assert world.look(6.5) == [(5.0, FOUND)]


def test_a_thread_that_was_set_again_begins_anew() -> None:
    world = World()
    assert world.look(1.0) == [(1.0, FOUND)]
    world.masks["podb/y"] = SHARED
    assert world.look(2.0) == []
    world.masks["podb/y"] = ALL
    assert world.look(3.0) == [(3.0, FOUND)]


def test_what_its_cgroup_may_use_is_an_overlap_and_not_this() -> None:
    assert World().look(1.0, other=ALL) == []


def test_the_mask_is_read_from_the_status_in_proc() -> None:
    text = "Name:\tiou-sqp-12\nUmask:\t0022\nCpus_allowed:\tff,00000003\nMems_allowed:\t1\n"
    assert parse_status(text) == ("iou-sqp-12", 0xFF00000003)
