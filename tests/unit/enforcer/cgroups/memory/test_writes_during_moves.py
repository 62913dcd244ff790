"""While memory is moved, writes return once they have their effect, not when the kernel answers."""

import errno
import threading
from collections.abc import Iterator

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_campaigns.histories.kernel.watched import ModelWatch, WatchedModel
from numapin_enforcer.assignment.decode import decode_spec
from numapin_enforcer.cgroups.errors import CgroupError, CgroupRefusedError
from numapin_enforcer.cgroups.memory.writes_during_moves import MOST_WAITING, MoveGate, PatientFiles
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.tree_cache import TreeCache
from numapin_enforcer.cgroups.watch.inotify import Changes
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.goals import AssignmentGoal
from numapin_enforcer.reconciler import Reconciler
from support.fakes.kernels.flushing_kernel import POD, FlushingKernel

TWO_NODES = Topology(
    cpus=tuple(Cpu(cpu, cpu, 0, NO_CACHE, cpu // 2) for cpu in range(4)),
    numa_nodes=(NumaNode(0, 1 << 30), NumaNode(1, 1 << 30)),
)


@pytest.fixture
def kernel() -> Iterator[FlushingKernel]:
    made = FlushingKernel()
    yield made
    made.is_flushed.set()


def narrow(cpus: str = "0-2") -> Write:
    return Write(POD, CpuSet.parse(cpus), Step.NARROW)


def test_a_write_during_a_move_does_not_wait_for_its_end(kernel: FlushingKernel) -> None:
    gate = MoveGate()
    with gate.moving():
        PatientFiles(kernel, gate).write(narrow())
        assert kernel.read_one(POD).effective_cpus == CpuSet(range(3))
        assert not kernel.is_flushed.is_set()


def test_a_write_without_effect_is_a_failure_that_is_retried(kernel: FlushingKernel) -> None:
    kernel.has_effect_at_once = False
    gate = MoveGate()
    with gate.moving(), pytest.raises(CgroupError, match="memory is being moved") as raised:
        PatientFiles(kernel, gate).write(narrow())
    assert raised.value.number == errno.ETIMEDOUT


def test_a_write_for_which_no_thread_can_be_started_fails_alone(
    kernel: FlushingKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after more of them than may wait: none of them waits for the kernel."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    files = PatientFiles(kernel, MoveGate(left_moving=True))
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        for _ in range(MOST_WAITING + 1):
            with pytest.raises(CgroupError, match="no thread can be started") as raised:
                files.write(narrow())
            assert raised.value.number == errno.EAGAIN
    files.write(narrow())
    assert kernel.read_one(POD).effective_cpus == CpuSet(range(3))


def test_what_the_kernel_refuses_during_a_move_is_refused(kernel: FlushingKernel) -> None:
    def refuse(write: Write) -> None:
        raise CgroupRefusedError(write.path, str(write.value), errno.EBUSY, "busy")

    kernel.before_write, gate = refuse, MoveGate()
    with gate.moving(), pytest.raises(CgroupRefusedError):
        PatientFiles(kernel, gate).write(narrow())


def test_only_so_many_threads_wait_for_the_kernel(kernel: FlushingKernel) -> None:
    gate = MoveGate()
    files = PatientFiles(kernel, gate)
    with gate.moving():
        for number in range(MOST_WAITING):
            files.write(narrow(("0-2", "0-1")[number % 2]))
        with pytest.raises(CgroupError, match="memory is being moved"):
            files.write(narrow())
        kernel.is_flushed.set()
        for _ in range(MOST_WAITING):
            kernel.waiting.acquire()


def test_a_new_process_does_not_wait_for_a_move_that_an_ended_one_has_begun(
    kernel: FlushingKernel,
) -> None:
    files = PatientFiles(kernel, MoveGate(left_moving=True))
    for cpus in ("0-2", "0-1"):
        files.write(narrow(cpus))
        assert kernel.read_one(POD).effective_cpus == CpuSet.parse(cpus)
    assert not kernel.is_flushed.is_set()


def test_a_new_process_waits_for_the_kernel_once_it_has_answered() -> None:
    kernel, threads = WatchedModel(Version.V2, CpuSet(range(4)), MemSet((0,))), set[str]()
    kernel.make(POD)
    kernel.before_write = lambda _: threads.add(threading.current_thread().name)
    gate = MoveGate(left_moving=True)
    while gate.is_moving:
        PatientFiles(kernel, gate).write(narrow())
    assert threads == {"write"}
    PatientFiles(kernel, gate).write(narrow())
    assert threads == {"write", threading.current_thread().name}


def test_no_move_begins_while_a_write_is_made() -> None:
    """Otherwise the write would wait for that move."""
    gate, began = MoveGate(), threading.Event()
    seen: list[bool] = []

    def move() -> None:
        with gate.moving():
            began.set()

    def during(_: Write) -> None:
        threading.Thread(target=move, daemon=True).start()
        seen.append(began.wait(0.01))

    kernel = WatchedModel(Version.V2, CpuSet(range(4)), MemSet((0,)))
    kernel.make(POD)
    kernel.before_write = during
    PatientFiles(kernel, gate).write(narrow())
    assert seen == [False]
    assert began.wait(60)


def test_a_new_pod_is_fenced_while_the_memory_of_a_container_moves(kernel: FlushingKernel) -> None:
    """The kernel answers no write until the move ends; the reconciler ends its pass before."""
    kernel.is_flushed.set()
    naming, gate = CgroupNaming(Driver.CGROUPFS), MoveGate()
    cache = TreeCache(kernel, ModelWatch(kernel))
    reconciler = Reconciler(PatientFiles(kernel, gate), cache, naming)
    container = f"{POD}/{'a' * 64}"
    kernel.make(container)
    spec = decode_spec(
        {
            "pools": {"reserved": "0", "shared": "0-2"},
            "containers": [
                {
                    "podUID": "1",
                    "namespace": "d",
                    "pod": "p",
                    "container": "c",
                    "cpus": "3",
                    "exclusive": True,
                }
            ],
        }
    )
    goal = AssignmentGoal(spec, TWO_NODES, {"a" * 64: "c"})
    assert reconciler.converge(goal, full_resync=True).complete
    assert reconciler.converge(goal, full_resync=True).complete
    with gate.moving():
        kernel.is_flushed.clear()
        kernel.make("kubepods/pod2")
        reconciler.first_writes.fence_new(Changes(("kubepods/pod2",)), {})
        assert kernel.read_one("kubepods/pod2").effective_cpus == CpuSet(range(3))
        kernel.make("kubepods/pod3")
        assert reconciler.converge(goal, full_resync=False).complete
        assert kernel.read_one("kubepods/pod3").effective_cpus == CpuSet(range(3))
