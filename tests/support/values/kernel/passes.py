"""One pass over the kernel model, and trees to make it on: as others left them, or as we did."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_campaigns.histories.kernel.model import KernelModel
from numapin_enforcer.cgroups.apply import Outcome, apply, unblocked
from numapin_enforcer.cgroups.errors import error_of
from numapin_enforcer.cgroups.write import Write
from numapin_enforcer.plan.writes.ordered import plan
from support.values.kernel.laws import held_now
from support.values.kernel.worlds import World, followers, scattered, specs

patient = settings(
    max_examples=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def enforce(world: World, model: KernelModel, spec: NodeAssignmentSpec) -> Outcome:
    """One pass: read, plan, write what is quick and then what moves memory."""
    tree = model.read()
    planned = plan(tree, world.desired(spec, tree))
    first = apply(planned.quick, model)
    then = apply(unblocked(planned.moves, first), model)
    return Outcome(*(getattr(first, name) + getattr(then, name) for name in Outcome.__slots__))


def holders(world: World, model: KernelModel, spec: NodeAssignmentSpec) -> dict[str, CpuSet]:
    return held_now(world, spec, model.read())


def in_force(data: st.DataObject, world: World) -> tuple[KernelModel, NodeAssignmentSpec]:
    """A tree that one spec was enforced on, and that spec."""
    model, spec = data.draw(scattered(world)), data.draw(specs(world))
    assert enforce(world, model, spec).complete
    return model, spec


def some_tree(data: st.DataObject, world: World) -> tuple[KernelModel, NodeAssignmentSpec]:
    """A tree as others left it, or as an earlier spec did; and the spec to come."""
    if data.draw(st.booleans(), label="from a spec in force"):
        return tree_after_a_spec(data, world)
    return tree_of_others(data, world)


def tree_after_a_spec(data: st.DataObject, world: World) -> tuple[KernelModel, NodeAssignmentSpec]:
    """A tree on which one spec was enforced, and the spec that follows it."""
    model, before = in_force(data, world)
    return model, data.draw(followers(world, before))


def tree_of_others(data: st.DataObject, world: World) -> tuple[KernelModel, NodeAssignmentSpec]:
    """A tree with any sets, and the first spec to enforce on it."""
    return data.draw(scattered(world)), data.draw(specs(world))


def copy_of(model: KernelModel) -> KernelModel:
    made = KernelModel(model.version, model.possible, model.mems, model.root)
    made.online = model.online
    made.groups = {path: replace(group) for path, group in model.groups.items()}
    return made


def refuse(places: set[int], number: int, then: Callable[[Write], None]) -> Callable[[Write], None]:
    """What a model does before each write: those at `places` fail with the errno `number`."""
    seen = 0

    def before(write: Write) -> None:
        nonlocal seen
        then(write)
        seen += 1
        if seen - 1 in places:
            raise error_of(write.path, str(write.value), OSError(number, "injected"))

    return before
