"""Threads that do not keep to their cgroup: found, set again, and named if they come back."""

from collections.abc import Mapping

import pytest

from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.goals import AssignmentGoal
from numapin_enforcer.threads.check import MOST_AT_ONCE, ThreadCheck
from numapin_enforcer.threads.repeated import CLEAN_SECONDS, MOST_RETRY_SECONDS
from numapin_enforcer.threads.survey import MOST_CGROUPS, MOST_THREADS
from support.fakes.kernels.threads import ModelThreads
from support.fakes.manual_clock import ManualClock
from support.fakes.worlds.reconciler_world import EXCLUSIVE, MACHINE, NAMES, OTHER, A, B, World, own
from support.values.specs_and_trees import spec

SHARED = f"{OTHER}/{B}"
WORKER = "iou-wrk-77"


class Checked:
    """A world whose threads are looked at in each pass."""

    def __init__(self, version: Version, exclusive: str = "4-7", shared: str = "0-3") -> None:
        self.world, self.clock = World(version), ManualClock()
        self.threads = ModelThreads(self.world.model)
        self.check = ThreadCheck(self.threads, self.clock)
        owner = [own("exclusive", exclusive)] if exclusive else []
        self.goal = AssignmentGoal(spec(*owner, shared=shared), MACHINE, NAMES)
        self.set_again = 0

    def run(self, seconds: float = 10.0, *, resynced: bool = True) -> Mapping[str, str]:
        """A pass some time later; returns the CPUs of wide threads by cgroup."""
        self.clock.stand_still(seconds)
        reconciler = self.world.reconciler
        done = reconciler.converge(self.goal, full_resync=resynced)
        assert done.tree is not None
        paths = self.check.look(done.tree, done.desired, reconciler.naming, resynced=resynced)
        self.set_again += len(paths)
        if paths:
            done = reconciler.set_again(self.goal, done, paths)
            assert done.tree is not None
            self.check.look_again(done.tree)
        assert (done.complete, done.drifts) == (True, ())
        return {one.path: str(one.cpus) for one in self.check.wide}


@pytest.fixture(params=list(Version), ids=["v1", "v2"])
def node(request: pytest.FixtureRequest) -> Checked:
    made = Checked(request.param)
    made.run()  # this narrows the shared container, so all threads that it has then follow
    return made


def test_threads_that_follow_their_cgroup_are_nothing_to_report(node: Checked) -> None:
    node.threads.start(SHARED)
    assert (node.run(), node.set_again, node.check.note) == ({}, 0, "")


def test_a_wide_thread_gets_the_cpus_of_its_cgroup_before_anything_is_reported(
    node: Checked,
) -> None:
    thread = node.threads.start(SHARED, "0-7", WORKER)
    assert node.run() == {}
    assert str(node.threads.running[thread].cpus) == "0-3"
    assert node.world.cpus(SHARED) == "0-3"


def test_what_comes_back_is_named_until_it_stays_away_for_long(node: Checked) -> None:
    node.threads.start(SHARED, "0-7", WORKER)
    assert node.run() == {}
    node.threads.start(SHARED, "0-7", WORKER)
    assert node.run() == {SHARED: "4-7"}
    assert [one.name for one in node.check.wide] == [WORKER]
    assert node.run(CLEAN_SECONDS / 2) == {SHARED: "4-7"}
    assert node.run(CLEAN_SECONDS) == {}


def test_a_thread_that_cannot_be_set_again_is_named_at_once() -> None:
    node = Checked(Version.V1, exclusive="1-7", shared="0")
    node.run()
    node.threads.start(SHARED, "0-7", WORKER)
    assert node.run() == {SHARED: "1-7"}


def test_a_set_is_written_again_only_for_exclusive_cpus_of_others(node: Checked) -> None:
    """An exclusive container's threads may have been pinned, which a write undoes up to Linux 6.1.

    Its workers on CPUs of the pool, which it had before, harm no exclusive container.
    """
    node.threads.start(f"{EXCLUSIVE}/{A}", "0-7", WORKER)
    node.run()
    assert node.set_again == 0


def test_the_name_of_a_thread_decides_nothing(node: Checked) -> None:
    """Any thread may have any name; its mask is what the kernel goes by."""
    node.threads.start(SHARED, name=WORKER)
    node.run()
    assert node.set_again == 0
    thread = node.threads.start(SHARED, "0-7", "harmless")
    node.run()
    assert str(node.threads.running[thread].cpus) == "0-3"


def test_nothing_is_read_while_no_cpu_is_exclusive_or_between_resyncs(node: Checked) -> None:
    node.threads.start(SHARED, "0-7")
    node.run()
    lists = node.threads.lists
    node.run(resynced=False)
    assert node.threads.lists == lists
    idle = Checked(node.world.model.version, exclusive="")
    idle.threads.start(SHARED, "0-7")
    assert (idle.run(), idle.threads.lists) == ({}, 0), "nothing is exclusive"


def test_threads_are_looked_at_as_soon_as_the_first_cpu_is_exclusive() -> None:
    """A polling thread of io_uring is wide from its start, and no set need change for the owner."""
    node = Checked(Version.V2, exclusive="")
    node.run()
    thread = node.threads.start(SHARED, "0-7")
    node.run(resynced=False)
    assert str(node.threads.running[thread].cpus) == "0-7"
    one = spec(own("exclusive", "4-7"), shared="0-3")
    node.goal = AssignmentGoal(one, MACHINE, NAMES)
    node.run(resynced=False)
    assert str(node.threads.running[thread].cpus) == "0-3"


def test_exclusive_containers_that_come_and_go_cost_no_look_each(node: Checked) -> None:
    for _ in range(2):
        node.threads.start(SHARED, "0-7", WORKER)
        node.run()
    lists, owned = node.threads.lists, node.goal
    for _ in range(5):
        node.goal = AssignmentGoal(spec(shared="0-3"), MACHINE, NAMES)
        node.run(1.0, resynced=False)
        node.goal = owned
        assert node.run(0.5, resynced=False) == {SHARED: "4-7"}, "what was known still is"
    assert node.threads.lists == lists


def test_a_container_that_makes_new_ones_for_ever_is_set_again_less_and_less(
    node: Checked,
) -> None:
    passes = 500
    for _ in range(passes):
        node.threads.start(SHARED, "0-7", WORKER)
        node.run()
        node.threads.running.clear()
    assert node.check.wide
    assert node.set_again < 10 + passes * 10 / MOST_RETRY_SECONDS + 1


def test_new_ones_are_set_again_at_the_next_resync(node: Checked) -> None:
    """The pass that wrote the set took longer, so it is a little less than 10 s ago."""
    for seconds in (10.0, 9.9, 19.8):
        node.threads.start(SHARED, "0-7", WORKER)
        node.run(seconds)
    assert node.set_again == 3


def test_many_containers_are_set_again_a_few_at_a_time(node: Checked) -> None:
    for number in range(3 * MOST_AT_ONCE):
        node.world.start(f"{OTHER}/{number:064x}")
    node.run()
    for number in range(3 * MOST_AT_ONCE):
        node.threads.start(f"{OTHER}/{number:064x}", "0-7")
    assert len(node.run()) == 2 * MOST_AT_ONCE
    assert node.set_again == MOST_AT_ONCE


def test_threads_of_a_container_that_is_gone_are_forgotten(node: Checked) -> None:
    for _ in range(2):
        node.threads.start(SHARED, "0-7")
        node.run()
    node.threads.running.clear()
    node.world.model.vanish(SHARED)
    assert node.run() == {}


def test_one_look_is_bounded_and_goes_on_where_the_last_one_ended(node: Checked) -> None:
    paths = [f"{OTHER}/{number:064x}" for number in range(2 * MOST_CGROUPS)]
    for path in paths:
        node.world.start(path)
    node.run(resynced=False)
    wide = [node.threads.start(path, "0-7") for path in (paths[0], paths[-1])]
    for _ in range(3):
        before = node.threads.lists
        node.run()
        assert node.threads.lists - before <= MOST_CGROUPS + 1
    assert [str(node.threads.running[one].cpus) for one in wide] == ["0-3"] * 2


def test_a_thread_among_very_many_is_found_and_hides_no_other_container(node: Checked) -> None:
    path = f"{OTHER}/{'c' * 64}"
    node.world.start(path)
    node.run()
    for _ in range(6 * MOST_THREADS):
        node.threads.start(SHARED)
    hidden, other = node.threads.start(SHARED, "0-7"), node.threads.start(path, "0-7")
    looks = 0
    while str(node.threads.running[hidden].cpus) != "0-3":
        before, looks = node.threads.masks, looks + 1
        node.run()
        assert node.threads.masks - before <= MOST_THREADS + 2
        assert looks <= 20
    assert str(node.threads.running[other].cpus) == "0-3"


@pytest.mark.parametrize("ends", [False, True])
def test_a_thread_that_has_left_its_cgroup_meanwhile_is_none_of_it(
    node: Checked, *, ends: bool
) -> None:
    """Its id may be that of another thread by now."""
    thread = node.threads.start(SHARED, "0-7")
    node.threads.leaving[thread] = "" if ends else "kubepods"
    assert (node.run(), node.set_again) == ({}, 0)


def test_threads_that_are_not_seen_or_not_readable_are_noted(node: Checked) -> None:
    node.threads.hidden.add(SHARED)
    node.run()
    assert node.check.note == "some threads are not seen: the enforcer's pod needs hostPID"
    node.threads.problem = "Permission denied"
    assert "cannot be read: Permission denied" in node.check.note
