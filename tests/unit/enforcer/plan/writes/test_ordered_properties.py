"""From any tree to any spec on the kernel model: the invariants hold after every write."""

import errno
from collections.abc import Callable
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_api.topology import Topology
from numapin_campaigns.laws.cgroup_tree import alone
from numapin_enforcer.cgroups.write import Write
from numapin_enforcer.plan.writes.ordered import plan
from support.values.kernel.laws import (
    Watch,
    assert_mems_stayed,
    assert_reached,
    has_now,
    held_now,
)
from support.values.kernel.passes import (
    copy_of,
    enforce,
    holders,
    in_force,
    patient,
    refuse,
    some_tree,
)
from support.values.kernel.worlds import (
    NAMING,
    World,
    born,
    followers,
    pods,
    scattered,
    specs,
    worlds,
)

ERRNOS = (
    errno.ERANGE,
    errno.EINVAL,
    errno.ENOSPC,
    errno.EBUSY,
    errno.EACCES,
    errno.EROFS,
    errno.EPERM,
    errno.EIO,
    errno.ENOMEM,
)
"""The errors seen from writes to cpusets, and those that any file can have."""


@patient
@given(data=st.data(), world=worlds())
def test_any_tree_reaches_any_spec_in_one_pass_and_a_second_writes_nothing(
    data: st.DataObject, world: World
) -> None:
    model, spec = data.draw(scattered(world)), data.draw(specs(world))
    Watch(world, model, holders(world, model, spec))
    before = model.read()
    outcome = enforce(world, model, spec)
    assert outcome.complete, outcome
    assert_reached(world, spec, model.read())
    assert_mems_stayed(world, spec, before, model.read())
    tree = model.read()
    assert plan(tree, world.desired(spec, tree)).writes == ()


@patient
@given(data=st.data(), world=worlds())
def test_exclusive_cpus_stay_exclusive_while_one_spec_follows_another(
    data: st.DataObject, world: World
) -> None:
    model, spec = in_force(data, world)
    for _ in range(data.draw(st.integers(1, 3))):
        spec = data.draw(followers(world, spec))
        Watch(world, model, holders(world, model, spec))
        before = model.read()
        assert enforce(world, model, spec).complete
        assert_reached(world, spec, model.read())
        assert_mems_stayed(world, spec, before, model.read())


@settings(patient, max_examples=20)
@given(data=st.data(), world=worlds(), number=st.sampled_from(ERRNOS))
def test_after_a_failed_write_the_tree_is_safe_and_the_next_pass_completes(
    data: st.DataObject, world: World, number: int
) -> None:
    start, spec = some_tree(data, world)
    count = len(plan(start.read(), world.desired(spec, start.read())).writes)
    several = data.draw(st.sets(st.integers(0, 30)), label="several at once")
    for indices in [*({index} for index in range(count)), several & set(range(count))]:
        model = copy_of(start)
        watch = Watch(world, model, holders(world, start, spec))
        model.before_write = refuse(indices, number, watch.before)
        outcome = enforce(world, model, spec)
        assert outcome.complete == (not indices), outcome
        model.before_write = watch.before
        watch.held |= holders(world, model, spec)
        assert enforce(world, model, spec).complete
        assert_reached(world, spec, model.read())


@patient
@given(data=st.data(), world=worlds())
def test_cgroups_that_vanish_between_reading_and_writing_are_normal(
    data: st.DataObject, world: World
) -> None:
    model, spec = some_tree(data, world)
    moments = {
        path: data.draw(st.integers(0, 12))
        for path in sorted(data.draw(st.sets(st.sampled_from(world.paths()[2:]))))
    }
    watch = Watch(world, model, holders(world, model, spec))
    model.before_write = at_each(watch, moments, model.vanish)
    outcome = enforce(world, model, spec)
    assert outcome.complete, outcome
    model.before_write = watch.before
    assert enforce(world, model, spec).complete
    assert_reached(world, spec, model.read())


def at_each(
    watch: Watch, moments: dict[str, int], happens: Callable[[str], None]
) -> Callable[[Write], None]:
    """A hook before each write: calls `happens` with a path when its moment has come."""
    count = 0

    def before(write: Write) -> None:
        nonlocal count
        watch.before(write)
        for path, moment in moments.items():
            if moment == count:
                happens(path)
        count += 1

    return before


@patient
@given(data=st.data(), world=worlds())
def test_cgroups_that_appear_between_reading_and_writing_are_set_by_the_next_pass(
    data: st.DataObject, world: World
) -> None:
    """The kernel sets new cgroups; only they may share exclusive CPUs until the next pass."""
    model, spec = some_tree(data, world)
    late = data.draw(pods("pod-9", NAMING))
    grown = replace(world, pods=(*world.pods, late))
    spec_then = data.draw(specs(grown) | st.just(spec))
    deeper = [f"{one.path()}/{'e' * 64}" for one in world.pods] + [late.path() + "/" + "d" * 64]
    paths = sorted({*late.paths(), *data.draw(st.sets(st.sampled_from(deeper)))})
    moment = data.draw(st.integers(0, 8))
    watch = Watch(world, model, holders(world, model, spec))

    def appear(path: str) -> None:
        watch.unseen.add(path)
        born(model, path)

    model.before_write = at_each(watch, dict.fromkeys(paths, moment), appear)
    enforce(world, model, spec)
    model.before_write = watch.before
    Watch(grown, model, holders(grown, model, spec_then))
    assert enforce(grown, model, spec_then).complete
    assert_reached(grown, spec_then, model.read())


@patient
@given(data=st.data(), world=worlds())
def test_exclusive_cpus_that_return_from_offline_stay_exclusive(
    data: st.DataObject, world: World
) -> None:
    """From a CPU's going offline to the next pass nothing holds: the kernel may give its container
    the set of the parent. When the CPU returns, no other cgroup gets it."""
    model, spec = in_force(data, world)
    gone = CpuSet(data.draw(st.sets(st.sampled_from(sorted(world.topology.online)))))
    gone -= CpuSet([min(world.topology.online)])
    without = replace(world, topology=without_cpus(world.topology, gone))
    model.set_online(without.topology.online)
    model.before_write = model.after_write = lambda write: None
    assert enforce(without, model, spec).complete
    tree = model.read()
    assert_reached(without, spec, tree)
    held = held_now(without, spec, tree)
    model.set_online(world.topology.online)
    for path, cpus in held.items():
        assert cpus <= alone(path, has_now(model.read())), path
    Watch(world, model, held)
    assert enforce(world, model, spec).complete
    assert_reached(world, spec, model.read())


def without_cpus(topology: Topology, gone: CpuSet) -> Topology:
    """The same machine with some more CPUs offline."""
    cpus = tuple(cpu for cpu in topology.cpus if cpu.id not in gone)
    return Topology(cpus, topology.numa_nodes, topology.offline | gone)
