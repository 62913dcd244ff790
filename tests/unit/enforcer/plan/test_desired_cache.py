"""What is computed again for a few cgroups says the same as what is computed for all of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_campaigns.histories.kernel.model import KernelModel
from numapin_enforcer.cgroups.tree import Tree, Version, contains, parent
from numapin_enforcer.plan.desired import desire
from numapin_enforcer.plan.desired_cache import DesiredCache
from numapin_enforcer.plan.writes.involved import involved
from numapin_enforcer.plan.writes.ordered import plan
from support.fakes.worlds.reconciler_world import (
    EXCLUSIVE,
    MACHINE,
    NAMES,
    NAMING,
    OTHER,
    A,
    B,
    own,
)
from support.fakes.worlds.reconciler_world import World as SmallWorld
from support.values.kernel.passes import in_force, patient
from support.values.kernel.worlds import World, born, followers, worlds
from support.values.specs_and_trees import spec


def read_again(before: Tree, model: KernelModel) -> Tree:
    """The model's tree, in which only what differs is a new object."""
    now = model.read()
    gone = dict.fromkeys(before.cgroups.keys() - now.cgroups.keys())
    return before.with_changes({**now.cgroups, **gone})


def disturb(data: st.DataObject, world: World, model: KernelModel) -> None:
    """Others write some sets; cgroups come and go."""
    few = st.lists(st.sampled_from(world.paths()), max_size=3)
    for path in data.draw(few, label="overwritten"):
        above = model.groups.get(parent(path))
        is_leaf = not any(parent(one) == path for one in model.groups)
        may_write = world.version is Version.V2 or is_leaf
        if path in model.groups and above is not None and above.cpus and may_write:
            some = data.draw(st.sets(st.sampled_from(sorted(above.cpus)), min_size=1))
            model.groups[path].cpus = CpuSet(some)
    for path in data.draw(few, label="gone or new"):
        if path in model.groups:
            for one in [one for one in model.groups if contains(path, one)]:
                del model.groups[one]
        elif parent(path) in model.groups:
            born(model, path)


@patient
@given(world=worlds(), data=st.data())
def test_the_cache_answers_as_if_everything_was_computed(world: World, data: st.DataObject) -> None:
    model, given_spec = in_force(data, world)
    cache, tree = DesiredCache(world.naming), model.read()
    names = world.names()
    for _ in range(4):
        answer = cache.desired(given_spec, tree, names, world.topology)
        assert answer == desire(given_spec, tree, world.naming, names, world.topology)
        assert all(
            list(answer).index(parent(path)) < list(answer).index(path)
            for path in answer
            if path != tree.root
        )
        disturb(data, world, model)
        tree = read_again(tree, model)
        if data.draw(st.booleans(), label="a name is forgotten") and names:
            names = {**names}
            names.pop(data.draw(st.sampled_from(sorted(names)), label="whose"))
        if data.draw(st.sampled_from((False, False, True)), label="another spec"):
            given_spec = data.draw(followers(world, given_spec))


@patient
@given(world=worlds(), data=st.data())
def test_a_plan_of_the_part_that_is_involved_is_the_plan_of_the_tree(
    world: World, data: st.DataObject
) -> None:
    model, given_spec = in_force(data, world)
    cache, names = DesiredCache(world.naming), world.names()
    tree = model.read()
    wanted = cache.desired(given_spec, tree, names, world.topology)
    if plan(tree, wanted).writes:
        return
    settled = (tree, wanted)
    disturb(data, world, model)
    tree = read_again(tree, model)
    if data.draw(st.booleans(), label="a name is forgotten") and names:
        names = {**names}
        names.pop(data.draw(st.sampled_from(sorted(names)), label="whose"))
    wanted = cache.desired(given_spec, tree, names, world.topology)
    assert plan(involved(tree, wanted, settled), wanted) == plan(tree, wanted)


@pytest.mark.parametrize("version", list(Version))
def test_only_the_changed_cgroup_and_its_ancestors_are_involved(version: Version) -> None:
    world = SmallWorld(version)
    given_spec, cache = spec(own("exclusive", "4-7")), DesiredCache(NAMING)
    done = world.run(given_spec)
    assert done.tree is not None
    wanted = cache.desired(given_spec, done.tree, NAMES, MACHINE)
    path = f"{OTHER}/{B}"
    changed = replace(done.tree.cgroups[path], effective_cpus=CpuSet([0]))
    tree = done.tree.with_changes({path: changed})
    again = cache.desired(given_spec, tree, NAMES, MACHINE)
    assert again[f"{EXCLUSIVE}/{A}"] is wanted[f"{EXCLUSIVE}/{A}"]
    part = involved(tree, again, (done.tree, wanted))
    assert list(part.cgroups) == ["kubepods", "kubepods/besteffort", OTHER, path]
