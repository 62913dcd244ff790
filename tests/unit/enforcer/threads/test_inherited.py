"""Threads that have inherited the CPU affinity of the container runtime, and those that chose one.

The exclusive container has the CPUs 4-7, all others 0-3.
"""

from collections.abc import Mapping

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.goals import AssignmentGoal
from numapin_enforcer.threads.check import IDLE_SECONDS, ThreadCheck
from numapin_enforcer.threads.inherited import MOST_EXAMINED, MOST_PARENTS
from numapin_enforcer.threads.survey import MOST_THREADS
from support.fakes.kernels.threads import ModelThreads
from support.fakes.manual_clock import ManualClock
from support.fakes.worlds.reconciler_world import EXCLUSIVE, MACHINE, NAMES, OTHER, A, B, World, own
from support.values.specs_and_trees import spec

OWNER, SHARED = f"{EXCLUSIVE}/{A}", f"{OTHER}/{B}"
SANDBOX, SIDECAR = f"{EXCLUSIVE}/{'5' * 64}", f"{EXCLUSIVE}/{'6' * 64}"


class Node:
    """A node whose runtime has the affinity `shim`, and leaves it to containers."""

    def __init__(self, shim: str, exclusive: str = "4-7", shared: str = "0-3") -> None:
        self.world, self.clock, self.shim = World(Version.V2), ManualClock(), shim
        self.threads = ModelThreads(self.world.model)
        self.threads.shim = CpuSet.parse(shim)
        self.check = ThreadCheck(self.threads, self.clock)
        self.assign(exclusive, shared)
        self.run()

    def assign(self, exclusive: str, shared: str) -> None:
        owner = [own("exclusive", exclusive)] if exclusive else []
        self.goal = AssignmentGoal(spec(*owner, shared=shared), MACHINE, NAMES)

    def start(self, path: str, name: str = "program") -> int:
        """A process with what the runtime has."""
        if path not in self.world.model.groups:
            self.world.start(path)
            self.run()
        return self.threads.start_process(path, self.shim, name)

    def run(self, seconds: float = 10.0) -> Mapping[str, str]:
        """A pass with a resync; returns the inherited affinity of each cgroup that has one."""
        self.clock.stand_still(seconds)
        reconciler = self.world.reconciler
        done = reconciler.converge(self.goal, full_resync=True)
        assert done.tree is not None
        assert self.check.look(done.tree, done.desired, reconciler.naming, resynced=True) == ()
        return {one.path: str(one.cpus) for one in self.check.inherited}

    def found(self) -> Mapping[str, str]:
        """What is found after two looks."""
        self.run()
        return self.run()


def test_a_container_that_inherited_a_part_of_its_cpus_is_found_in_the_second_look() -> None:
    """In the first moment a program or a newer runtime may still choose other CPUs."""
    node = Node("0-5")
    node.start(OWNER)
    assert node.run() == {}
    assert node.run() == {OWNER: "0-5"}
    (one,) = node.check.inherited
    assert one.runtime == "containerd-shim"
    assert str(one.usable(CpuSet.parse("4-7"))) == "4-5"


@pytest.mark.parametrize("shim", ["0-7", "4-7", "0-3", "1"])
def test_an_affinity_that_takes_none_or_all_of_its_cpus_does_not_confine_it(shim: str) -> None:
    node = Node(shim)
    node.start(OWNER)
    assert node.found() == {}
    assert node.threads.processes == 0, "no process is read for it"


def test_a_shared_container_is_found_alike() -> None:
    node = Node("0-1")
    node.start(SHARED)
    assert node.found() == {SHARED: "0-1"}


@pytest.mark.parametrize("chosen", ["4", "5", "4,6", "6-7", "4-6"])
def test_cpus_that_a_program_has_chosen_are_its_own_affair(chosen: str) -> None:
    for shim in ("0-7", "0-5"):
        node = Node(shim)
        node.threads.start_process(OWNER, chosen)
        assert node.found() == {}


def test_a_program_that_pins_each_of_its_threads_has_chosen_them() -> None:
    """As DPDK does with `-l 4,5`, on CPUs that the runtime has too."""
    node = Node("0-5")
    first = node.threads.start_process(OWNER, "4")
    node.threads.start_process(OWNER, "5", parent=first)
    assert node.found() == {}


def test_a_thread_that_uses_the_rest_was_not_confined() -> None:
    node = Node("0-5")
    first = node.start(OWNER)
    node.threads.start_process(OWNER, "6", parent=first)
    assert node.found() == {}


def test_threads_that_chose_of_what_the_first_one_inherited_change_nothing() -> None:
    """As nginx with `worker_cpu_affinity auto`."""
    node = Node("0-5")
    first = node.start(OWNER)
    for cpu in "45":
        node.threads.start_process(OWNER, cpu, parent=first)
    assert node.found() == {OWNER: "0-5"}


def test_a_command_in_a_container_inherits_it_too_and_says_nothing_of_the_container() -> None:
    node = Node("0-5")
    node.threads.start_process(OWNER, "4-7")
    node.start(OWNER)
    assert node.found() == {}


def test_the_sandbox_of_its_pod_shows_that_the_runtime_resets_the_affinity() -> None:
    """Then a program has chosen the very CPUs that the runtime has."""
    node = Node("0-5")
    node.world.start(SANDBOX)
    node.assign("4-7", "0-3")
    node.threads.start_process(OWNER, "4-5")
    node.run()
    node.threads.start_process(SANDBOX, name="pause")
    assert node.found() == {OWNER: "0-5"}, "the sandbox has no CPU that the runtime has not"
    node = Node("0-1,4-5")
    node.world.start(SANDBOX)
    node.run()
    node.threads.start_process(OWNER, "4-5")
    node.threads.start_process(SANDBOX, name="pause")
    assert node.found() == {}


def test_a_sandbox_is_no_container_to_name() -> None:
    node = Node("0-1,4-5")
    for path, name in ((SANDBOX, "pause"), (OWNER, "program"), (SIDECAR, "proxy")):
        node.start(path, name)
    assert node.found() == {OWNER: "0-1,4-5", SIDECAR: "0-1,4-5"}


def test_a_process_of_the_runtime_in_a_pod_is_no_container_to_name() -> None:
    """CRI-O's conmon has a cgroup of its own there, on the shared pool."""
    node = Node("0-1")
    node.start(f"{EXCLUSIVE}/crio-conmon-{B}", "conmon")
    node.start(SIDECAR)
    node.start(f"{EXCLUSIVE}/{'7' * 64}/container")
    assert node.found().keys() == {SIDECAR, f"{EXCLUSIVE}/{'7' * 64}/container"}


def test_a_sidecar_that_resets_it_says_nothing_of_another_container() -> None:
    node = Node("0-1,4-5")
    node.start(OWNER)
    node.start(SIDECAR)
    node.threads.running[max(node.threads.running)].cpus = CpuSet.parse("0-3")
    assert node.found() == {OWNER: "0-1,4-5"}


def test_the_runtime_is_the_first_process_outside_of_containers() -> None:
    """Where the pod's processes share a PID namespace, orphans are children of the sandbox."""
    node = Node("0-1,4-5")
    pause = node.start(SANDBOX, "pause")
    shell = node.threads.start_process(OWNER, node.shim, parent=pause)
    node.threads.start_process(OWNER, node.shim, parent=shell)
    assert node.found() == {OWNER: "0-1,4-5"}


@pytest.mark.parametrize("parents", ["unseen", "ended", "too many"])
def test_without_a_runtime_nothing_is_said(parents: str) -> None:
    node = Node("0-5")
    match parents:
        case "unseen":
            node.threads.running[node.start(OWNER)].parent = 0
        case "ended":
            node.threads.running[node.start(OWNER)].parent = 99
        case _:
            one = node.start(SANDBOX)
            for _ in range(MOST_PARENTS + 1):
                one = node.threads.start_process(SANDBOX, node.shim, parent=one)
            node.threads.start_process(OWNER, node.shim, parent=one)
    assert node.found() == {}


def test_a_container_that_moves_keeps_what_it_inherited() -> None:
    """The kernel remembers the affinity also while the set has none of its CPUs, or only these."""
    node = Node("0-5")
    node.start(OWNER)
    assert node.found() == {OWNER: "0-5"}
    (one,) = node.check.inherited
    for cpus, usable in (("5-6", "5"), ("6-7", "6-7"), ("5", "5"), ("4-7", "4-5")):
        node.assign(cpus, "0-3")
        assert str(one.usable(CpuSet.parse(cpus))) == usable
        node.run()
        assert {str(each.cpus) for each in node.threads.running.values()} == {usable}
        assert node.run() == {OWNER: "0-5"} or usable in {"6-7", "5"}
        assert node.check.inherited == (one,)


def test_one_that_gets_all_its_cpus_is_forgotten() -> None:
    """An administrator's `taskset` helps; so does the end of the container."""
    node = Node("0-1")
    thread = node.start(SHARED)
    assert node.found() == {SHARED: "0-1"}
    node.threads.running[thread].cpus = CpuSet.parse("0-3")
    assert node.run() == {}
    node.threads.running[thread].cpus = CpuSet.parse("0-1")
    assert node.found() == {SHARED: "0-1"}
    node.world.model.vanish(SHARED)
    assert node.run() == {}


def test_what_was_judged_is_not_searched_for_again() -> None:
    node = Node("0-5")
    node.start(OWNER)
    node.threads.start_process(SHARED, "2")
    node.found()
    processes = node.threads.processes
    node.run()
    assert node.threads.processes == processes


def test_only_some_are_judged_in_one_look() -> None:
    node = Node("0-1")
    paths = [f"{OTHER}/{number:064x}" for number in range(MOST_EXAMINED + 5)]
    for path in paths:
        node.world.start(path)
    node.run()
    for path in paths:
        node.threads.start_process(path, "0-1")
    assert node.run() == {}
    assert len(node.run()) == MOST_EXAMINED
    assert node.run().keys() == set(paths)


def test_a_container_with_very_many_threads_is_judged_by_all_of_them() -> None:
    node = Node("0-5")
    node.start(OWNER)
    for _ in range(2 * MOST_THREADS):
        node.start(OWNER)
    for _ in range(8):
        found = node.run()
    assert found == {OWNER: "0-5"}
    node.threads.running[max(node.threads.running)].cpus = CpuSet.parse("7")
    for _ in range(4):
        found = node.run()
    assert found == {}


def test_shared_containers_are_looked_at_each_minute_while_no_cpu_is_exclusive() -> None:
    node = Node("0-1", exclusive="", shared="0-7")
    node.start(SHARED)
    assert node.run(IDLE_SECONDS) == {}
    lists = node.threads.lists
    assert node.run(IDLE_SECONDS - 1) == {}
    assert node.threads.lists == lists
    assert node.run(1.0) == {SHARED: "0-1"}


def test_nothing_is_known_once_nothing_is_enforced() -> None:
    node = Node("0-5")
    node.start(OWNER)
    assert node.found()
    node.check.rest()
    assert node.check.inherited == ()
