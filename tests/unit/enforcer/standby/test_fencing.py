"""The standby's passes over a model of the kernel."""

import logging
import os
from types import SimpleNamespace
from typing import Any, cast

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_enforcer.cgroups.errors import CgroupReadOnlyError
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.tree_cache import TreeCache
from numapin_enforcer.cgroups.write import Write
from numapin_enforcer.standby.fencing import (
    FENCED,
    RESYNC_SECONDS,
    RETRY_SECONDS,
    Fencing,
    NewCgroupsGoal,
    wait_for_event,
)
from support.fakes.flushing_kernel import POD, FlushingKernel
from support.fakes.manual_clock import ManualClock
from support.fakes.watched_kernel import ModelWatch, WatchedModel

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


@pytest.fixture
def pods(model: WatchedModel) -> Any:
    snapshot = TreeCache(model, ModelWatch(model))
    return SimpleNamespace(files=model, snapshot=snapshot, naming=CgroupNaming(Driver.CGROUPFS))


@pytest.fixture
def fencing(clock: ManualClock) -> Fencing:
    machine = SimpleNamespace(topology=MACHINE, rescan=lambda: False)
    return Fencing(cast("Any", machine), clock.monotonic)


def cpus(model: WatchedModel, path: str) -> str:
    return str(model.read().cgroups[path].effective_cpus)


def test_a_new_pod_is_kept_off_exclusive_cpus(
    fencing: Fencing, pods: Any, model: WatchedModel
) -> None:
    assert fencing.make_pass(pods, SPEC) == RESYNC_SECONDS
    assert cpus(model, NEW_POD) == "0-2"


def test_a_new_pod_is_fenced_while_the_kernel_moves_memory_for_a_hung_enforcer(
    clock: ManualClock,
) -> None:
    """Otherwise its program begins at the end of the move, perhaps before the standby goes on."""
    machine: Any = SimpleNamespace(topology=MACHINE, rescan=lambda: False)
    kernel, naming = FlushingKernel(), CgroupNaming(Driver.CGROUPFS)
    kernel.make(NEW_POD)
    snapshot: Any = TreeCache(kernel, ModelWatch(kernel))
    pods: Any = SimpleNamespace(files=kernel, snapshot=snapshot, naming=naming)
    Fencing(machine, clock.monotonic, NewCgroupsGoal).make_pass(pods, SPEC)
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


def test_only_an_event_that_matters_ends_the_wait(fencing: Fencing) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"e")
    matter = iter([False, False, True])
    watch = SimpleNamespace(fileno=lambda: reading, collect=lambda: next(matter))
    wait_for_event(cast("Any", SimpleNamespace(watch=watch)), fencing, 60)
    assert next(matter, None) is None
    os.close(reading)
    os.close(writing)
