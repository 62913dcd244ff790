import errno
from collections.abc import Callable
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_model import KernelModel
from kernel_worlds import Watch, World, alone, assert_reached, held_now, scattered, specs, worlds

from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_enforcer.apply import Outcome, apply
from numapin_enforcer.cgroups import CgroupRefusedError, Write
from numapin_enforcer.plan import plan

patient = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def enforce(world: World, model: KernelModel, spec: NodeAssignmentSpec) -> Outcome:
    """One pass: read, plan, write what is quick and then what moves memory."""
    tree = model.read()
    planned = plan(tree, world.desired(spec, tree))
    first = apply(planned.quick, model)
    then = apply(planned.moves, model, first)
    return Outcome(*(getattr(first, name) + getattr(then, name) for name in Outcome.__slots__))


def holders(world: World, model: KernelModel, spec: NodeAssignmentSpec) -> dict[str, CpuSet]:
    tree = model.read()
    return held_now(tree, world.desired(spec, tree))


@patient
@given(data=st.data(), world=worlds())
def test_any_tree_reaches_any_spec_in_one_pass_and_a_second_writes_nothing(
    data: st.DataObject, world: World
) -> None:
    model = data.draw(scattered(world))
    spec = data.draw(specs(world))
    wanted = world.desired(spec, model.read())
    Watch(world, model, holders(world, model, spec))
    outcome = enforce(world, model, spec)
    assert outcome.complete, outcome
    assert_reached(model.read(), wanted)
    tree = model.read()
    assert plan(tree, world.desired(spec, tree)).writes == ()


@patient
@given(data=st.data(), world=worlds())
def test_owners_are_never_disturbed_while_one_spec_follows_another(
    data: st.DataObject, world: World
) -> None:
    model = world.model()
    for spec in data.draw(st.lists(specs(world), min_size=2, max_size=4)):
        held = holders(world, model, spec)
        Watch(world, model, held)
        assert enforce(world, model, spec).complete
        assert_reached(model.read(), world.desired(spec, model.read()))


def refuse_at(place: int, then: Callable[[Write], None]) -> Callable[[Write], None]:
    """What a model does before each write: the one at `place` is refused."""
    seen = 0

    def before(write: Write) -> None:
        nonlocal seen
        then(write)
        seen += 1
        if seen - 1 == place:
            raise CgroupRefusedError(write.path, str(write.value), errno.EBUSY, "injected")

    return before


@patient
@given(data=st.data(), world=worlds())
def test_a_write_that_fails_leaves_all_safe_and_the_next_pass_goes_on(
    data: st.DataObject, world: World
) -> None:
    before, spec = data.draw(specs(world)), data.draw(specs(world))
    start = data.draw(scattered(world))
    if data.draw(st.booleans(), label="from a spec in force"):
        enforce(world, start, before)
    held = holders(world, start, spec)
    wanted = world.desired(spec, start.read())
    for place in range(len(plan(start.read(), wanted).writes)):
        model = copy_of(world, start)
        watch = Watch(world, model, dict(held))
        model.before_write = refuse_at(place, watch.before)
        assert not enforce(world, model, spec).complete
        model.before_write = watch.before
        watch.held |= holders(world, model, spec)
        assert enforce(world, model, spec).complete
        assert_reached(model.read(), world.desired(spec, model.read()))


def copy_of(world: World, model: KernelModel) -> KernelModel:
    made = KernelModel(model.version, model.possible, model.mems, model.root)
    made.online = model.online
    made.groups = {
        path: type(group)(group.cpus, group.mems, group.tasks)
        for path, group in model.groups.items()
    }
    return made


@patient
@given(data=st.data(), world=worlds())
def test_cgroups_that_vanish_between_reading_and_writing_are_normal(
    data: st.DataObject, world: World
) -> None:
    model = data.draw(scattered(world))
    spec = data.draw(specs(world))
    leaving = data.draw(
        st.sets(st.sampled_from(world.paths()[2:])) if world.pods else st.just(set())
    )
    moments = {path: data.draw(st.integers(0, 20)) for path in sorted(leaving)}
    watch = Watch(world, model, holders(world, model, spec))
    count = 0

    def vanish(write: Write) -> None:
        nonlocal count
        watch.before(write)
        for path, moment in moments.items():
            if moment == count:
                model.vanish(path)
        count += 1

    model.before_write = vanish
    outcome = enforce(world, model, spec)
    assert outcome.complete, outcome
    model.before_write = watch.before
    assert enforce(world, model, spec).complete
    assert_reached(model.read(), world.desired(spec, model.read()))


@patient
@given(data=st.data(), world=worlds())
def test_cpus_that_go_and_come_back_never_go_to_two(data: st.DataObject, world: World) -> None:
    """Between a CPU's going and our next pass nothing can be promised: the kernel gives its owner
    what is around it. Its coming back gives it to nobody while it has an owner."""
    spec = data.draw(specs(world))
    model = world.model()
    enforce(world, model, spec)
    gone = CpuSet(data.draw(st.sets(st.sampled_from(sorted(world.topology.online)))))
    gone -= CpuSet([min(world.topology.online)])
    without = replace(world, topology=missing(world.topology, gone))
    model.set_online(without.topology.online)
    model.before_write = model.after_write = lambda write: None
    assert enforce(without, model, spec).complete
    tree = model.read()
    assert_reached(tree, without.desired(spec, tree))
    held = held_now(tree, without.desired(spec, tree))
    model.set_online(world.topology.online)
    for path, cpus in held.items():
        assert cpus <= alone(model.read(), path), path
    Watch(world, model, held)
    assert enforce(world, model, spec).complete
    assert_reached(model.read(), world.desired(spec, model.read()))


def missing(topology: Topology, gone: CpuSet) -> Topology:
    """The same machine with some more CPUs offline."""
    cpus = tuple(cpu for cpu in topology.cpus if cpu.id not in gone)
    return Topology(cpus, topology.numa_nodes, topology.offline | gone)
