"""Resyncs that only check what exclusive CPUs rest on, instead of reading everything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_campaigns.histories.kernel.model import Group
from numapin_enforcer.cgroups.tree import Version, parent
from numapin_enforcer.reconciler import MOST_CHECKS
from numapin_enforcer.status.in_force.summary import summarize
from support.fakes.worlds.reconciler_world import (
    ALL,
    EXCLUSIVE,
    NAMING,
    OTHER,
    A,
    B,
    C,
    World,
    own,
)
from support.values.specs_and_trees import spec

WANTED = spec(own("exclusive", "4-7"))
GUARANTEED = "kubepods/podguaranteed"


@pytest.fixture(params=list(Version), ids=["v1", "v2"])
def world(request: pytest.FixtureRequest) -> World:
    return settled(request.param)


def settled(version: Version) -> World:
    """A node in which nothing is left to do; everything has just been read."""
    world = World(version, most_checks=MOST_CHECKS)
    world.start(f"{GUARANTEED}/{C}")
    assert world.run(WANTED, everything=True).complete
    world.model.reads = world.model.full_reads = 0
    return world


def overwrite_silently(world: World, cpus: str, *paths: str) -> None:
    """Change sets without an event, as a splice(2) to the file does on older kernels."""
    for path in paths:
        world.model.groups[path].cpus = CpuSet.parse(cpus)


def test_a_check_reads_no_cgroup_below_one_without_exclusive_cpus(world: World) -> None:
    assert world.run(WANTED, everything=True).complete
    read = ("kubepods", "kubepods/besteffort", GUARANTEED, EXCLUSIVE, f"{EXCLUSIVE}/{A}")
    assert (world.model.reads, world.model.full_reads) == (len(read), 0)


def test_everything_is_read_after_some_checks(world: World) -> None:
    for _ in range(MOST_CHECKS):
        world.run(WANTED, everything=True)
    assert world.model.full_reads == 0
    world.run(WANTED, everything=True)
    assert world.model.full_reads == 1
    world.run(WANTED, everything=True)
    assert world.model.full_reads == 1


@pytest.mark.parametrize(
    "intruders",
    [
        ("kubepods/besteffort", OTHER, f"{OTHER}/{B}"),
        (GUARANTEED, f"{GUARANTEED}/{C}"),
        (GUARANTEED,),
    ],
    ids=["class", "pod-and-container", "pod"],
)
def test_a_check_finds_cgroups_that_got_exclusive_cpus_without_an_event(
    world: World, intruders: tuple[str, ...]
) -> None:
    overwrite_silently(world, "0-7", *intruders)
    done = world.run(WANTED, everything=True)
    assert [one.path for one in done.drifts] == [intruders[0]]
    assert {world.cpus(path) for path in intruders} == {"0-3"}


def test_a_check_finds_an_exclusive_container_that_lost_a_cpu(world: World) -> None:
    overwrite_silently(world, "4", f"{EXCLUSIVE}/{A}")
    world.run(WANTED, everything=True)
    assert world.cpus(f"{EXCLUSIVE}/{A}") == "4-7"


def test_a_check_finds_cpus_that_kubepods_lost() -> None:
    world = settled(Version.V2)
    world.model.online = CpuSet.parse("0-6")
    done = world.run(WANTED, everything=True)
    assert done.tree is not None
    assert str(done.tree.cgroups[f"{EXCLUSIVE}/{A}"].effective_cpus) == "4-6"


def test_everything_is_read_while_something_is_left_to_do_or_events_may_be_missed(
    world: World,
) -> None:
    world.watch.problem = "raise fs.inotify.max_user_watches"
    world.run(WANTED, everything=True)
    assert world.model.full_reads == 1
    world.watch.problem = ""
    world.run(spec(own("exclusive", "4-5")), everything=True)
    assert world.model.full_reads == 2


CHANGES = st.lists(
    st.tuples(st.integers(0, 7), st.sets(st.integers(0, 7), min_size=1)), min_size=1, max_size=4
)


@given(version=st.sampled_from(list(Version)), changes=CHANGES)
def test_whatever_changes_silently_what_is_reported_exclusive_after_a_check_is_so(
    version: Version, changes: list[tuple[int, set[int]]]
) -> None:
    """Any silent changes that the kernel's own law allows: a child is inside its parent."""
    world = settled(version)
    paths = sorted(world.model.groups)
    for index, cpus in changes:
        change_lawfully(world, paths[index % len(paths)], CpuSet(cpus))
    done = world.run(WANTED, everything=True)
    assert done.tree is not None
    reported = summarize(WANTED, done.tree, done.desired, NAMING).containers
    real = world.model.read()
    true = summarize(WANTED, real, done.desired, NAMING).containers
    assert [one.exclusive for one in reported if one.exclusive] == [
        one.exclusive for one in true if one.exclusive
    ]


def change_lawfully(world: World, path: str, cpus: CpuSet) -> None:
    """Change one set; on v1 as far as the kernel accepts it beside parent and children."""
    groups: dict[str, Group] = world.model.groups
    if world.model.version is Version.V1:
        cpus &= groups[parent(path)].cpus if path != "kubepods" else ALL
        for one, group in groups.items():
            cpus |= group.cpus if parent(one) == path else CpuSet()
    groups[path].cpus = cpus or groups[path].cpus
