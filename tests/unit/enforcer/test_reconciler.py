"""Passes over a model of the kernel that refuses what Linux refuses, v1 and v2."""

from dataclasses import replace

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.errors import CgroupReadOnlyError
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.write import Write
from numapin_enforcer.goals import AssignmentGoal
from numapin_enforcer.plan.drift import Cause
from numapin_enforcer.status.in_force.summary import summarize
from support.fakes.worlds.reconciler_world import (
    ALL,
    EXCLUSIVE,
    MACHINE,
    NAMES,
    NAMING,
    OTHER,
    A,
    B,
    C,
    World,
    own,
)
from support.values.specs_and_trees import spec


@pytest.fixture(params=list(Version), ids=["v1", "v2"])
def world(request: pytest.FixtureRequest) -> World:
    return World(request.param)


def test_an_exclusive_container_gets_its_cpus_and_all_others_leave_them(world: World) -> None:
    done = world.run(spec(own("exclusive", "4-7")))
    assert done.complete
    assert (world.cpus(f"{EXCLUSIVE}/{A}"), world.cpus(f"{OTHER}/{B}")) == ("4-7", "0-3")
    assert done.tree is not None
    summary = summarize(spec(own("exclusive", "4-7")), done.tree, done.desired, NAMING)
    assert [(str(one.cpus), one.exclusive) for one in summary.containers] == [("4-7", True)]
    assert summary.running == ("exclusive",)
    assert summary.pools is not None
    assert (str(summary.pools.shared), str(summary.pools.exclusive)) == ("0-3", "4-7")


def test_a_pass_without_differences_writes_nothing(world: World) -> None:
    world.run(spec(own("exclusive", "4-7")))
    writes: list[Write] = []
    world.model.after_write = writes.append
    done = world.run(spec(own("exclusive", "4-7")), everything=True)
    assert (done.complete, writes, done.drifts) == (True, [], ())


def test_the_result_is_the_same_object_while_nothing_changes(world: World) -> None:
    wanted = AssignmentGoal(spec(own("exclusive", "4-7")), MACHINE, NAMES)
    world.reconciler.converge(wanted, full_resync=True)
    first = world.reconciler.converge(wanted, full_resync=False)
    assert world.reconciler.converge(replace(wanted), full_resync=True) is first
    renamed = replace(wanted, names={A: "main"})
    assert world.reconciler.converge(renamed, full_resync=False) is not first


def test_only_cgroups_named_by_events_are_read_again(world: World) -> None:
    world.run(spec(own("exclusive", "4-7")), everything=True)
    world.model.reads = 0
    world.run(spec(own("exclusive", "4-7")))
    assert world.model.reads == 0
    world.start(f"{OTHER}/{C}")
    done = world.run(spec(own("exclusive", "4-7")))
    assert done.complete
    assert world.cpus(f"{OTHER}/{C}") == "0-3"
    assert done.drifts == ()


def test_an_external_change_is_reverted_and_returned_once(world: World) -> None:
    world.run(spec(own("exclusive", "4-7")))
    world.overwrite(f"{EXCLUSIVE}/{A}", "4")
    done = world.run(spec(own("exclusive", "4-7")))
    assert world.cpus(f"{EXCLUSIVE}/{A}") == "4-7"
    (drift,) = done.drifts
    assert str(drift) == ("container default/exclusive/main had cpus 4 instead of 4-7; reverted")
    assert drift.cause is Cause.OWNER_MOVED
    assert world.run(spec(own("exclusive", "4-7")), everything=True).drifts == ()


def test_an_external_change_of_a_parent_is_returned_once(
    world: World,
) -> None:
    world.run(spec(own("exclusive", "4-7")))
    for path in ("kubepods/besteffort", OTHER, f"{OTHER}/{B}"):
        world.overwrite(path, "0-7")
    done = world.run(spec(own("exclusive", "4-7")))
    assert world.cpus(f"{OTHER}/{B}") == "0-3"
    assert [(one.path, one.cause) for one in done.drifts] == [
        ("kubepods/besteffort", Cause.INTRUSION)
    ]


def test_a_new_spec_is_no_external_change(world: World) -> None:
    world.run(spec(own("exclusive", "4-7")))
    done = world.run(spec(own("exclusive", "0-3"), shared="4-7"))
    assert done.drifts == ()
    assert (world.cpus(f"{EXCLUSIVE}/{A}"), world.cpus(f"{OTHER}/{B}")) == ("0-3", "4-7")


def test_a_change_of_an_empty_cgroup_is_no_external_change(world: World) -> None:
    world.run(spec(own("exclusive", "4-7")))
    world.make("kubepods/podnew")
    world.run(spec(own("exclusive", "4-7")))
    world.overwrite("kubepods/podnew", "0-7")
    done = world.run(spec(own("exclusive", "4-7")))
    assert done.drifts == ()
    assert world.cpus("kubepods/podnew") == "0-3"


def test_a_write_of_the_kubelet_to_kubepods_is_no_external_change(world: World) -> None:
    world.run(spec(own("exclusive", "4-7")))
    world.overwrite("kubepods", "0-7")
    assert world.run(spec(own("exclusive", "4-7"))).drifts == ()


def test_a_container_that_starts_during_a_pass_is_fenced_by_the_same_pass(world: World) -> None:
    late = f"{OTHER}/{C}"

    def be_late(_: Write) -> None:
        world.model.after_write = lambda _: None
        world.start(late)

    world.model.after_write = be_late
    done = world.run(spec(own("exclusive", "4-7")))
    assert done.complete
    assert world.cpus(late) == "0-3"


def test_a_pod_that_is_deleted_during_a_pass_is_no_error(world: World) -> None:
    def vanish(_: Write) -> None:
        world.model.before_write = lambda _: None
        world.model.vanish(OTHER)

    world.model.before_write = vanish
    done = world.run(spec(own("exclusive", "4-7")))
    assert (done.complete, done.failures) == (True, ())
    assert world.cpus(f"{EXCLUSIVE}/{A}") == "4-7"


def test_a_tree_that_keeps_changing_is_incomplete(world: World) -> None:
    def undo(write: Write) -> None:
        if write.path == f"{EXCLUSIVE}/{A}" and write.value == CpuSet.parse("4-7"):
            world.model.after_write = lambda _: None
            world.overwrite(f"{EXCLUSIVE}/{A}", "4")
            world.model.after_write = undo

    world.model.after_write = undo
    done = world.run(spec(own("exclusive", "4-7")))
    assert not done.complete
    assert done.tree is not None
    world.model.after_write = lambda _: None
    assert world.run(spec(own("exclusive", "4-7"))).complete


def test_a_refused_write_is_returned_and_its_cpus_are_not_exclusive(world: World) -> None:
    def refuse(write: Write) -> None:
        if write.path.startswith(OTHER):
            raise CgroupReadOnlyError(write.path, str(write.value), 30, "read-only")

    world.run(spec())
    world.model.before_write = refuse
    wanted = spec(own("exclusive", "1"), shared="2-3")
    done = world.run(wanted)
    if world.model.version is Version.V1:
        assert not done.complete
        assert done.failures
    assert done.tree is not None
    summary = summarize(wanted, done.tree, done.desired, NAMING)
    (one,) = summary.containers
    free = CpuSet.parse(world.cpus(f"{OTHER}/{B}")).isdisjoint(CpuSet.parse("1"))
    assert one.exclusive == (str(one.cpus) == "1" and free)
    world.model.before_write = lambda _: None
    assert world.run(wanted).complete


def test_a_container_without_a_name_shares_until_it_has_one(world: World) -> None:
    wanted = spec(own("exclusive", "4-7"))
    nameless = AssignmentGoal(wanted, MACHINE, {})
    world.reconciler.converge(nameless, full_resync=False)
    assert world.cpus(f"{EXCLUSIVE}/{A}") == "0-3"
    world.reconciler.converge(replace(nameless, names=NAMES), full_resync=False)
    assert world.cpus(f"{EXCLUSIVE}/{A}") == "4-7"


def test_a_container_below_a_cgroup_that_changed_without_event_is_fenced(
    world: World,
) -> None:
    """On v2 a parent can give its cgroups the controller at any time, without an event."""
    world.run(spec(own("exclusive", "4-7")))
    world.make("kubepods/burstable")
    world.model.appeared.clear()
    world.model.written.clear()
    world.start(f"kubepods/burstable/podnew/{C}")
    assert world.run(spec(own("exclusive", "4-7"))).complete
    assert world.cpus(f"kubepods/burstable/podnew/{C}") == "0-3"


def test_a_release_restores_every_set(world: World) -> None:
    before = {path: one.effective_cpus for path, one in world.model.read().cgroups.items()}
    world.run(spec(own("exclusive", "4-7")))
    done = world.run(None)
    assert done.complete
    after = {path: one.effective_cpus for path, one in world.model.read().cgroups.items()}
    assert after == before


def test_a_set_that_the_kernel_replaces_is_not_written_again_at_once() -> None:
    """On v2 a write succeeds although a parent or a partition withholds the CPUs."""
    world = World(Version.V2)
    world.model.online = CpuSet.parse("0-3")
    writes: list[Write] = []
    world.model.after_write = writes.append
    wanted = spec(own("exclusive", "6-7"), shared="0-3")
    done = world.run(wanted)
    assert (done.complete, done.failures, done.stable) == (False, (), True)
    del writes[:]
    assert not world.run(wanted, everything=True).complete
    assert len(writes) == len({(one.path, one.value) for one in writes})
    world.model.online = ALL
    assert world.run(wanted, everything=True).complete
    assert world.cpus(f"{EXCLUSIVE}/{A}") == "6-7"


def test_observing_writes_nothing(world: World) -> None:
    world.run(spec(own("exclusive", "4-7")))
    world.overwrite(f"{EXCLUSIVE}/{A}", "4")
    done = world.reconciler.observe(full_resync=False)
    assert (done.complete, done.drifts) == (True, ())
    assert world.cpus(f"{EXCLUSIVE}/{A}") == "4"
    assert world.run(spec(own("exclusive", "4-7"))).drifts == ()


def test_a_pass_without_kubepods_is_complete(world: World) -> None:
    world.run(spec(own("exclusive", "4-7")))
    world.model.vanish("kubepods")
    done = world.run(spec(own("exclusive", "4-7")))
    assert (done.tree, done.complete) == (None, True)


def test_lost_events_cause_a_full_read(world: World) -> None:
    world.run(spec(own("exclusive", "4-7")))
    world.overwrite(f"{EXCLUSIVE}/{A}", "4")
    world.model.written.clear()
    assert not world.run(spec(own("exclusive", "4-7"))).drifts
    world.model.overflowed = True
    world.run(spec(own("exclusive", "4-7")))
    assert world.cpus(f"{EXCLUSIVE}/{A}") == "4-7"


def test_the_containers_of_a_deleted_pod_are_gone_as_well(world: World) -> None:
    world.run(spec(own("exclusive", "4-7")))
    world.model.vanish(EXCLUSIVE)
    done = world.run(spec(own("exclusive", "4-7")))
    assert done.tree is not None
    assert EXCLUSIVE not in done.tree.cgroups
    assert f"{EXCLUSIVE}/{A}" not in done.tree.cgroups
