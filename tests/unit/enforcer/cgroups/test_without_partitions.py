"""What the enforcer plans with while containers are partitions: what others would have without."""

import errno
from collections.abc import Iterable

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.errors import CgroupVanishedError
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version, tree_of
from numapin_enforcer.cgroups.tree_cache import TreeCache
from numapin_enforcer.cgroups.watch.inotify import Changes
from numapin_enforcer.cgroups.write import Write

MEMS = MemSet((0,))
K, POD, MAIN, SIDE = "k", "k/a", "k/a/main", "k/a/side"
BURSTABLE, NEW, INSIDE = "k/b", "k/new", "k/new/c"


class Kernel:
    """The cgroups of a v2 kernel by hand: what each asks for, and what the kernel gives it."""

    def __init__(self) -> None:
        self.sets = {
            K: ("", "0-5"),
            POD: ("0-7", "0-5"),
            MAIN: ("6-7", "6-7"),
            SIDE: ("0-5", "0-5"),
            BURSTABLE: ("0-5", "0-5"),
        }
        self.events = Changes()
        self.problem = ""

    def cgroup(self, path: str) -> Cgroup:
        asked, given = map(CpuSet.parse, self.sets[path])
        return Cgroup(path, asked, MEMS, given, MEMS)

    def read(self, *_: object) -> Tree:
        return tree_of(Version.V2, K, [self.cgroup(path) for path in self.sets])

    def read_one(self, path: str) -> Cgroup:
        if path not in self.sets:
            raise CgroupVanishedError(path, None, errno.ENOENT, "gone")
        return self.cgroup(path)

    def read_effective_cpus(self, path: str) -> CpuSet:
        return self.read_one(path).effective_cpus

    def has_tasks(self, path: str) -> bool:
        return bool(path)

    def write(self, write: Write) -> None:
        raise NotImplementedError(str(write))


class Events:
    """The events that a test has put in."""

    problem = ""

    def __init__(self) -> None:
        self.next = Changes()

    def read(self) -> Changes:
        found, self.next = self.next, Changes()
        return found

    def cover(self, paths: Iterable[str]) -> None:
        """Everything is watched."""


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def cache(kernel: Kernel, events: Events) -> TreeCache:
    made = TreeCache(kernel, events)
    made.observe(full_resync=True)
    return made


def seen(cache: TreeCache) -> dict[str, str]:
    assert cache.tree is not None
    return {path: str(one.effective_cpus) for path, one in cache.tree.cgroups.items()}


BEFORE = {K: "0-7", POD: "0-7", MAIN: "6-7", SIDE: "0-5", BURSTABLE: "0-5"}


def test_ancestors_have_the_cpus_of_a_partition_below_them(cache: TreeCache) -> None:
    assert seen(cache) == BEFORE


def test_a_new_pod_without_a_set_is_not_fenced(
    cache: TreeCache, kernel: Kernel, events: Events
) -> None:
    """The kernel keeps it off 6-7 only for as long as the partition is there."""
    kernel.sets |= {NEW: ("", "0-5"), INSIDE: ("", "0-5")}
    events.next = Changes(appeared=(NEW, INSIDE))
    cache.observe(full_resync=False)
    assert seen(cache) == {**BEFORE, NEW: "0-7", INSIDE: "0-7"}
    kernel.sets[NEW] = ("0-5", "0-5")
    cache.read_back([NEW])
    assert seen(cache) == {**BEFORE, NEW: "0-5", INSIDE: "0-5"}


@pytest.mark.parametrize(
    ("asked", "given", "expected"),
    [
        ("0-7", "0-5", "0-7"),
        ("6-7", "0-5", "0-7"),
        ("4,7", "4", "4,7"),
        ("0-4", "0-4", "0-4"),
        ("0-4", "0-2", "0-2"),
    ],
    ids=["all", "only-those", "one-of-them", "none", "withheld"],
)
def test_who_asks_for_cpus_of_a_partition_is_an_intruder(
    kernel: Kernel, cache: TreeCache, asked: str, given: str, expected: str
) -> None:
    kernel.sets[BURSTABLE] = (asked, given)
    cache.observe(full_resync=True)
    assert seen(cache) == {**BEFORE, BURSTABLE: expected}


def test_a_partition_has_what_the_kernel_gives_it(kernel: Kernel, cache: TreeCache) -> None:
    kernel.sets[MAIN] = ("4-7", "6-7")
    cache.observe(full_resync=True)
    assert seen(cache) == BEFORE


def test_when_it_ends_all_is_read_as_it_is(
    kernel: Kernel, cache: TreeCache, events: Events
) -> None:
    kernel.sets |= {K: ("", "0-7"), POD: ("0-7", "0-7")}
    del kernel.sets[MAIN]
    events.next = Changes(vanished=(MAIN,))
    cache.observe(full_resync=False)
    assert seen(cache) == {path: cpus for path, cpus in BEFORE.items() if path != MAIN}


def test_what_does_not_change_stays_one_object(
    kernel: Kernel, cache: TreeCache, events: Events
) -> None:
    before = cache.tree
    cache.observe(full_resync=True)
    assert cache.tree is before
    events.next = Changes(written=(SIDE,))
    cache.observe(full_resync=False)
    assert cache.tree is before
    kernel.sets |= {K: ("", "0-7"), POD: ("0-7", "0-7")}  # it ended; its cpuset is as it was
    cache.observe(full_resync=True)
    assert cache.tree == before


def test_a_check_of_exclusive_cpus_compares_what_the_kernel_gives(
    kernel: Kernel, cache: TreeCache
) -> None:
    cpus = CpuSet.parse("6-7")
    assert cache.is_current(cpus)
    kernel.sets[MAIN] = ("6-7", "6")
    assert not cache.is_current(cpus)
