"""The standby's passes over a model of the kernel."""

import logging
import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_campaigns.histories.kernel.watched import ModelWatch, WatchedModel
from numapin_enforcer.cgroups.errors import CgroupReadOnlyError
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.tree import Tree, Version
from numapin_enforcer.cgroups.tree_cache import TreeCache
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.standby.fencing import (
    FENCED,
    RESYNC_SECONDS,
    RETRY_SECONDS,
    Fencing,
    rest,
    wait_for_event,
)
from numapin_enforcer.standby.goals import FenceGoal, NewCgroupsGoal
from support.fakes.kernels.flushing_kernel import POD, FlushingKernel
from support.fakes.kernels.new_pods import NewPods
from support.fakes.manual_clock import ManualClock

MACHINE = Topology(
    cpus=tuple(Cpu(cpu, cpu, 0, NO_CACHE, 0) for cpu in range(4)),
    numa_nodes=(NumaNode(0, 1 << 30),),
)
EXCLUSIVE = ContainerAssignment(
    pod_uid="exclusive", namespace="d", pod="p", container="c", cpus=CpuSet([3]), exclusive=True
)
SPEC = NodeAssignmentSpec(
    pools=Pools(reserved=CpuSet([0]), shared=CpuSet([0, 1, 2])), containers=(EXCLUSIVE,)
)
NEW_POD = "kubepods/podnew"


@pytest.fixture
def model() -> WatchedModel:
    made = WatchedModel(Version.V2, CpuSet(range(4)), MemSet((0,)))
    made.make(NEW_POD)
    return made


class Right:
    """The right to write, which the enforcer may have."""

    def __init__(self) -> None:
        self.is_free, self.is_ours = True, False

    def try_acquire(self) -> bool:
        self.is_ours = self.is_free
        return self.is_free

    def release(self) -> None:
        self.is_ours = False


@pytest.fixture
def new_pods() -> Iterator[NewPods]:
    with NewPods() as made:
        yield made


def tree_of(model: WatchedModel, new_pods: NewPods) -> Any:
    return SimpleNamespace(
        files=model,
        snapshot=TreeCache(model, ModelWatch(model)),
        naming=CgroupNaming(Driver.CGROUPFS),
        new_pods=new_pods,
        mounts=SimpleNamespace(version=model.version),
    )


@pytest.fixture
def pods(model: WatchedModel, new_pods: NewPods) -> Any:
    return tree_of(model, new_pods)


def fencing_of(clock: ManualClock, right: Right, goal: type[FenceGoal] = FenceGoal) -> Fencing:
    machine: Any = SimpleNamespace(topology=MACHINE, rescan=lambda **_: False)
    return Fencing(machine, right, clock.monotonic, goal)


@pytest.fixture
def right() -> Right:
    return Right()


@pytest.fixture
def fencing(clock: ManualClock, right: Right) -> Fencing:
    return fencing_of(clock, right)


def cpus(model: WatchedModel, path: str) -> str:
    return str(model.read().cgroups[path].effective_cpus)


def test_a_new_pod_is_kept_off_exclusive_cpus(
    fencing: Fencing, pods: Any, model: WatchedModel
) -> None:
    assert fencing.make_pass(pods, SPEC) == RESYNC_SECONDS
    assert cpus(model, NEW_POD) == "0-2"


def test_a_new_pod_is_fenced_while_the_kernel_moves_memory_for_a_hung_enforcer(
    clock: ManualClock, right: Right, new_pods: NewPods
) -> None:
    """Otherwise its program begins at the end of the move, perhaps before the standby goes on."""
    kernel = FlushingKernel()
    kernel.make(NEW_POD)
    fencing_of(clock, right, NewCgroupsGoal).make_pass(tree_of(kernel, new_pods), SPEC)
    assert (cpus(kernel, POD), cpus(kernel, NEW_POD)) == ("0-2", "0-2")
    assert not kernel.is_flushed.is_set()
    kernel.is_flushed.set()


def test_each_fenced_cgroup_is_logged(
    fencing: Fencing, pods: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        fencing.make_pass(pods, SPEC)
    logged = [(one.msg, vars(one).get("cgroup")) for one in caplog.records]
    assert (FENCED, NEW_POD) in logged


def test_a_tree_without_a_breach_is_not_written(
    fencing: Fencing, pods: Any, model: WatchedModel, clock: ManualClock
) -> None:
    fencing.make_pass(pods, SPEC)
    writes: list[Write] = []
    model.after_write = writes.append
    clock._now_seconds += RESYNC_SECONDS
    fencing.make_pass(pods, SPEC)
    assert writes == []


def test_a_refused_write_is_retried_with_back_off(
    fencing: Fencing, pods: Any, model: WatchedModel
) -> None:
    def refuse(write: Write) -> None:
        raise CgroupReadOnlyError(write.path, str(write.value), 30, "read-only")

    model.before_write = refuse
    waits = [fencing.make_pass(pods, SPEC) for _ in range(3)]
    assert waits == pytest.approx([RETRY_SECONDS, 2 * RETRY_SECONDS, 4 * RETRY_SECONDS])
    model.before_write = lambda _: None
    assert fencing.make_pass(pods, SPEC) == RESYNC_SECONDS
    assert cpus(model, NEW_POD) == "0-2"


def test_only_an_event_that_matters_ends_the_wait(fencing: Fencing, new_pods: NewPods) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"e")
    matter = iter([False, False, True])
    watch = SimpleNamespace(fileno=lambda: reading, collect=lambda: next(matter))
    tree: Any = SimpleNamespace(watch=watch, new_pods=new_pods)
    wait_for_event(tree, fencing, 60)
    assert next(matter, None) is None
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("goal", [FenceGoal, NewCgroupsGoal])
def test_new_pods_are_fenced_during_a_rest(
    clock: ManualClock, right: Right, pods: Any, new_pods: NewPods, goal: type[FenceGoal]
) -> None:
    model, fencing, late = pods.files, fencing_of(clock, right, goal), "kubepods/podlate"
    fencing.make_pass(pods, SPEC)
    model.make(late)
    new_pods.report(late)
    rest(pods, fencing, 0.001)
    assert (cpus(model, late), right.is_ours) == ("0-2", False)


def test_no_pod_is_fenced_once_the_enforcer_has_the_lock(
    fencing: Fencing, right: Right, pods: Any, new_pods: NewPods
) -> None:
    fencing.make_pass(pods, SPEC)
    pods.files.make("kubepods/podlate")
    new_pods.report("kubepods/podlate")
    right.is_free = False
    rest(pods, fencing, 0.001)
    assert cpus(pods.files, "kubepods/podlate") == "0-3"


def test_beside_a_hung_enforcer_a_pod_that_was_set_stays(
    clock: ManualClock, right: Right, pods: Any, new_pods: NewPods
) -> None:
    """It went on just now, and follows a newer spec."""
    model, fencing, late = pods.files, fencing_of(clock, right, NewCgroupsGoal), "kubepods/podlate"
    fencing.make_pass(pods, SPEC)
    model.make(late)
    model.write(Write(late, CpuSet((2, 3)), Step.NARROW))
    new_pods.report(late)
    rest(pods, fencing, 0.001)
    assert cpus(model, late) == "2-3"


def test_new_pods_are_fenced_while_the_first_pass_still_reads(
    fencing: Fencing, pods: Any, new_pods: NewPods
) -> None:
    model, late, seen = pods.files, "kubepods/podlate", list[str]()

    def begin_a_pod() -> None:
        if late not in model.groups:
            model.make(late)
            new_pods.report(late)

    read: Callable[[], Tree] = model.read

    def read_slowly() -> Tree:
        begin_a_pod()
        model.between_reads()
        seen.append(str(read().cgroups[late].effective_cpus))
        return read()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(model, "read", read_slowly)
        fencing.make_pass(pods, SPEC)
    assert seen[0] == "0-2"
