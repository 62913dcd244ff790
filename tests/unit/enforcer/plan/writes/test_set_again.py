"""A set goes to another one and back: every thread of the cgroup follows, and all laws hold."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_campaigns.histories.kernel.model import KernelModel
from numapin_enforcer.cgroups.apply import apply
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.plan.desired import desire
from numapin_enforcer.plan.writes.set_again import MOST_WRITES, set_again
from support.fakes.kernels.threads import ModelThreads
from support.fakes.worlds.reconciler_world import (
    EXCLUSIVE,
    MACHINE,
    NAMES,
    NAMING,
    OTHER,
    A,
    B,
    World,
    own,
)
from support.values.kernel.laws import Watch, held_now
from support.values.kernel.passes import in_force, patient, refuse
from support.values.kernel.worlds import worlds
from support.values.specs_and_trees import spec

SHARED, MINE = f"{OTHER}/{B}", f"{EXCLUSIVE}/{A}"


@pytest.fixture(params=list(Version), ids=["v1", "v2"])
def world(request: pytest.FixtureRequest) -> World:
    return World(request.param)


def sets(
    world: World, path: str, *containers: object, shared: str = "0-3"
) -> list[tuple[str, str]]:
    """Enforce, set again; returns the writes, each with the cgroup's last part."""
    one = spec(*containers, shared=shared)  # type: ignore[arg-type]
    world.run(one)
    tree = world.model.read()
    wanted = desire(one, tree, NAMING, NAMES, MACHINE)
    writes = set_again(tree, wanted, NAMING, path)
    before = world.model.read()
    assert apply(writes, world.model).complete
    after = {one.path: one.effective_cpus for one in world.model.read().cgroups.values()}
    assert after == {one.path: one.effective_cpus for one in before.cgroups.values()}
    return [(write.path.rpartition("/")[2], str(write.value)) for write in writes]


def test_a_shared_container_gives_one_cpu_up_and_gets_it_back(world: World) -> None:
    assert sets(world, SHARED, own("exclusive", "4-7")) == [(B, "0-2"), (B, "0-3")]


def test_a_single_cpu_that_nothing_can_replace_cannot_be_set_again(world: World) -> None:
    assert sets(world, SHARED, own("exclusive", "1-7"), shared="0") == []


def test_a_container_with_a_single_exclusive_cpu_borrows_a_shared_one(world: World) -> None:
    assert sets(world, MINE, own("exclusive", "7"), shared="0-6") == [(A, "0,7"), (A, "7")]


def test_cgroups_inside_a_container_that_has_the_cpu_give_it_up_first(world: World) -> None:
    inner = f"{SHARED}/inner"
    if world.model.version is Version.V2:
        world.model.groups[SHARED].tasks = 0
    world.run(spec(own("exclusive", "4-7")))
    world.make(inner)
    world.overwrite(inner, "3")
    made = sets(world, SHARED, own("exclusive", "4-7"))
    assert made == [(B, "0-1,3"), (B, "0-3")], "CPU 3 is all that the inner one has"


def test_a_cgroup_inside_a_container_is_reached(world: World) -> None:
    inner = f"{SHARED}/inner"
    if world.model.version is Version.V2:
        world.model.groups[SHARED].tasks = 0
    world.run(spec(own("exclusive", "4-7")))
    world.make(inner)
    world.run(spec(own("exclusive", "4-7")))
    threads = ModelThreads(world.model)
    wide = threads.start(inner, "0-7")
    sets(world, inner, own("exclusive", "4-7"))
    assert str(threads.running[wide].cpus) == "0-3"


def test_too_many_cgroups_inside_are_not_set_again() -> None:
    world = World(Version.V1)
    for number in range(MOST_WRITES):
        world.make(f"{SHARED}/inner{number}")
    assert sets(world, SHARED, own("exclusive", "4-7")) == []


def test_what_is_not_as_it_must_be_is_left_to_the_next_pass(world: World) -> None:
    one = spec(own("exclusive", "4-7"))
    world.run(one)
    world.overwrite(SHARED, "0-1")
    tree = world.model.read()
    assert set_again(tree, desire(one, tree, NAMING, NAMES, MACHINE), NAMING, SHARED) == ()


@patient
@given(st.data())
def test_the_laws_hold_after_each_write_and_all_threads_follow(data: st.DataObject) -> None:
    world = data.draw(worlds())
    model, one = in_force(data, world)
    tree = model.read()
    path = data.draw(st.sampled_from(sorted(tree.cgroups.keys() - {tree.root})))
    writes = set_again(tree, world.desired(one, tree), world.naming, path)
    threads = ModelThreads(model)
    wide = threads.start(path, str(world.topology.online))
    watch = Watch(world, model, held_now(world, one, tree))
    threads.watch()
    broken = data.draw(st.sets(st.integers(0, 5), max_size=1), label="writes that fail")
    model.before_write = refuse(broken, errno.EBUSY, watch.before)
    outcome = apply(writes, model)
    if writes and outcome.complete:
        after = model.read().cgroups
        assert {p: c.effective_cpus for p, c in after.items()} == {
            p: c.effective_cpus for p, c in tree.cgroups.items()
        }
        assert threads.running[wide].cpus == after[path].effective_cpus


def test_the_model_gives_threads_a_set_only_when_it_changes() -> None:
    model = KernelModel(Version.V2, CpuSet.parse("0-3"), MACHINE.mems)
    model.make("kubepods/podx")
    threads = ModelThreads(model)
    wide = threads.start("kubepods/podx", "0-7")
    threads.follow()
    assert str(threads.running[wide].cpus) == "0-7"
