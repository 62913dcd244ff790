"""The kernel model answers as this machine's kernel does, operation by operation."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet, MemSet
from numapin_campaigns.histories.kernel.model import KernelModel
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.cgroups.write import Step, Write
from support.real.cgroups import (
    RealCgroups,
    examples,
    may_hotplug,
    memory_nodes,
    online_cpus,
    possible_cpus,
)

NAMES = ("a", "a/b", "a/b/c", "a/d", "e")


@dataclass(frozen=True)
class Operation:
    """One operation on kernel and model; `value` is written, or it is the set of online CPUs."""

    verb: str
    path: str
    value: CpuSet | MemSet = CpuSet()

    def run(self, target: RealCgroups | KernelModel) -> int:
        """The errno, or 0."""
        path = f"{target.root}/{self.path}"
        try:
            if self.verb == "write":
                target.write(Write(path, self.value, Step.NARROW))
            elif self.verb == "set_online" and isinstance(self.value, CpuSet):
                target.set_online(self.value)
            else:
                getattr(target, self.verb)(path)
        except CgroupError as error:
            return error.number
        except OSError as error:
            return error.errno or -1
        return 0


def operations() -> st.SearchStrategy[Operation]:
    paths = st.sampled_from(NAMES)
    last, nodes = max(possible_cpus()), max(memory_nodes())
    cpus = st.sets(st.integers(0, last)).map(CpuSet)
    beyond = st.just(CpuSet([0, last + 1]))
    mems = st.sets(st.integers(0, nodes)).map(MemSet)
    missing = st.sampled_from([MemSet([0, nodes + 1]), MemSet([5000])])
    cases = [
        st.builds(Operation, st.sampled_from(["enter", "leave", "make", "remove"]), paths),
        st.builds(Operation, st.just("write"), paths, cpus),
        st.builds(Operation, st.just("write"), paths, cpus),
        st.builds(Operation, st.just("write"), paths, mems),
        st.builds(Operation, st.just("write"), paths, st.one_of(cpus, mems, beyond, missing)),
    ]
    if may_hotplug():
        online = st.sets(st.integers(1, last)).map(lambda ids: CpuSet([0, *ids]))
        cases.append(st.builds(Operation, st.just("set_online"), st.just(""), online))
    return st.one_of(cases)


@pytest.fixture(scope="module")
def real() -> Iterator[RealCgroups]:
    with RealCgroups() as made:
        yield made


def dressed() -> list[Operation]:
    """Every cgroup has all CPUs and memory, so that processes may come in at once."""
    sets = (online_cpus(), memory_nodes())
    return [Operation("write", name, value) for name in NAMES for value in sets]


def fresh(real: RealCgroups) -> KernelModel:
    model = KernelModel(real.version, possible_cpus(), memory_nodes(), real.root)
    model.set_online(online_cpus())
    return model


def below(tree: Tree) -> dict[str, object]:
    return dict(tree.cgroups)


@settings(
    max_examples=examples(150),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.booleans(), st.lists(operations(), min_size=15, max_size=60))
def test_the_model_gives_the_kernels_answers(
    real: RealCgroups, without_sets: bool, sequence: list[Operation]
) -> None:
    real.clear()
    model = fresh(real)
    for name in NAMES:
        assert Operation("make", name).run(real) == Operation("make", name).run(model) == 0
    for step, operation in enumerate(sequence if without_sets else dressed() + sequence):
        path = f"{real.root}/{operation.path}"
        if operation.verb == "leave" and not (path in model.groups and model.groups[path].tasks):
            continue
        message = f"step {step}: {operation} of {sequence}"
        assert operation.run(real) == operation.run(model), message
        assert below(real.read()) == below(model.read()), message
