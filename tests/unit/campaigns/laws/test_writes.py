"""What a write must not do to a CPU that a cgroup holds alone."""

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_campaigns.histories.kernel.model import KernelModel
from numapin_campaigns.laws.writes import BrokenLawError, Writes
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.write import Step, Write

TOPOLOGY = Topology(tuple(Cpu(cpu, cpu, 0, NO_CACHE, 0) for cpu in range(4)), (NumaNode(0, 1),))
OWNER, OTHER = "kubepods/owner", "kubepods/other"


def cpus(path: str, text: str) -> Write:
    return Write(path, CpuSet.parse(text), Step.NARROW)


@pytest.fixture
def judged() -> KernelModel:
    """`owner` holds CPU 3 alone, and `other` has the rest; each write is judged."""
    model = KernelModel(Version.V2, CpuSet(range(4)), MemSet([0]))
    for path in (OWNER, OTHER):
        model.make(path)
    model.write(cpus(OWNER, "2-3"))
    model.write(cpus(OTHER, "0-2"))
    writes = Writes(model, TOPOLOGY)
    writes.held = {OWNER: CpuSet.parse("3")}
    model.before_write, model.after_write = writes.before, writes.after
    return model


@pytest.mark.parametrize(
    ("write", "law"),
    [
        (cpus(OTHER, "0-3"), "I1"),
        (cpus(OTHER, ""), "I2"),
        (cpus(OTHER, "0-4"), "I2"),
        (Write(OTHER, MemSet([1]), Step.NARROW), "I2"),
    ],
    ids=["a CPU that is held", "no CPU", "an offline CPU", "a NUMA node without memory"],
)
def test_a_write_that_breaks_a_law_is_named(judged: KernelModel, write: Write, law: str) -> None:
    with pytest.raises(BrokenLawError) as found:
        judged.write(write)
    assert found.value.law == law


def test_what_is_not_held_may_be_shared(judged: KernelModel) -> None:
    judged.write(cpus(OWNER, "1-3"))


def test_a_cpu_that_its_holder_has_left_is_held_no_more(judged: KernelModel) -> None:
    judged.write(cpus(OWNER, "2"))
    judged.write(cpus(OTHER, "0-3"))
    judged.write(cpus(OWNER, "3"))
