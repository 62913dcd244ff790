"""What a pass reports: the status, Events and the probes."""

import errno

import pytest

from numapin_api.conditions.reasons import Obstacle
from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import CgroupStatus
from numapin_enforcer.cgroups.apply import Failure
from numapin_enforcer.cgroups.errors import CgroupRefusedError
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.plan.drift import Drift
from numapin_enforcer.status.other_writers import OFTEN, RUN_SECONDS
from numapin_enforcer.status.readiness import NO_ANSWER_YET
from numapin_enforcer.status.reporter import PassResult
from support.fakes.worlds.reporter_world import BODY, MACHINE, MEMS, POD, World


@pytest.fixture
def world() -> World:
    return World()


def test_a_pass_is_published_with_what_the_kernel_has(world: World) -> None:
    assert world.report()[0] == "Enforced"
    content = world.published[-1].content
    assert [(str(one.cpus), one.exclusive) for one in content.containers] == [("3", True)]
    assert content.observed_generation == 1
    assert content.cgroup == CgroupStatus(version=2, driver="cgroupfs")
    assert world.missing == {}


def test_a_status_says_which_boot_it_is_from_and_when_all_was_checked(world: World) -> None:
    world.report()
    assert (world.published[-1].content.boot_id, world.passed) == ("boot-1", [])
    world.report(PassResult("", None, (), 0, resynced=True))
    assert world.passed == [True]


def test_an_unreadable_tree_leaves_the_reported_containers(world: World) -> None:
    result = PassResult("", Obstacle("CgroupsUnreadable", "no"), (), 1)
    assert world.report(result, tree=None) == ("CgroupsUnreadable", "no")
    assert world.published[-1].blind


def test_nothing_is_published_while_an_update_ends_soon(world: World) -> None:
    world.report()
    world.report(finishes_soon=True)
    assert len(world.published) == 1


def test_what_this_process_lacks_is_said_while_all_is_enforced(world: World) -> None:
    world.reporter.remarks = ("no real-time priority", "nothing is sent by OTLP")
    reason, message = world.report()
    assert reason == "Enforced"
    assert message.endswith("no real-time priority; nothing is sent by OTLP")


def test_what_the_node_is_planned_with_is_said_if_it_is_a_part(world: World) -> None:
    world.machine.limits = "planned with CPU 2-3 of 0-3: cgroup kubepods has no others"
    reason, message = world.report()
    assert reason == "Enforced"
    assert message.endswith("planned with CPU 2-3 of 0-3: cgroup kubepods has no others")


def test_a_conflict_is_reported_before_all_else(world: World) -> None:
    result = PassResult("the kubelet pins", Obstacle("CgroupsUnreadable", "no"), (), 9)
    assert world.report(result) == ("KubeletStaticPolicy", "the kubelet pins")


def test_a_refused_write_is_reported(world: World) -> None:
    error = CgroupRefusedError(POD, "3", errno.EBUSY, "busy")
    failure = Failure(Write(POD, CpuSet((3,)), Step.NARROW), error)
    assert world.report(PassResult("", None, (failure,), 1))[0] == "CgroupWriteFailed"


def test_obstacles_of_the_background_are_reported(world: World) -> None:
    stalled, working = Obstacle("Stuck", "help"), Obstacle("Busy", "wait")
    assert world.report(working=(working,)) == ("Busy", "wait")
    assert world.report(stalled=(stalled,), working=(working,)) == ("Stuck", "help")


def test_a_program_that_keeps_changing_a_cgroup_is_named(world: World) -> None:
    drift = Drift(POD, (CpuSet((0,)), MEMS), (CpuSet((3,)), MEMS))
    for _ in range(OFTEN):
        world.reporter.drifted(drift)
        world.clock.stand_still(1)
    assert [(one.reason, "changed 10 times in 9 s" in one.note) for one, _ in world.posted] == [
        ("AnotherWriter", True)
    ]
    world.report()
    ready = world.published[-1].verdicts[0]
    assert ready.holds
    assert "was changed 10 times in 9 s" in ready.message
    world.clock.stand_still(RUN_SECONDS)
    world.report()
    assert "was changed" not in world.published[-1].verdicts[0].message


def test_fields_of_a_later_release_are_named(world: World) -> None:
    metadata = BODY["metadata"] | {"generation": 2}
    world.acceptance.offer(
        BODY | {"metadata": metadata, "spec": BODY["spec"] | {"idle": 1}}, MACHINE
    )
    world.report()
    ready = world.published[-1].verdicts[0]
    assert ready.holds
    assert ready.message.endswith("; this enforcer does not know spec.idle: no effect")


def test_an_incomplete_watch_is_reported(world: World) -> None:
    world.kubepods.watch_problem = "too many watches"
    assert world.report() == ("WatchIncomplete", "too many watches")


@pytest.mark.parametrize(
    ("part", "name"),
    [("assignments", "API server"), ("copy", "local copy")],
)
def test_a_problem_keeps_the_enforcer_from_being_ready(world: World, part: str, name: str) -> None:
    getattr(world, part).problem = "away"
    world.report()
    assert world.missing == {name: "away"}


def test_a_stalled_node_is_not_ready(world: World) -> None:
    world.report(stalled=(Obstacle("Stuck", "help"),))
    assert world.missing == {"enforcement": "Stuck: help"}


def test_before_the_runtime_has_answered_the_enforcer_is_not_ready(world: World) -> None:
    """A wrong socket may take the question and never answer."""
    world.report(runtime=None)
    assert world.missing == {"container runtime": NO_ANSWER_YET}
    world.report()
    assert world.missing == {}


def test_drifts_are_counted_on_from_the_last_status(world: World) -> None:
    drift = Drift(POD, (CpuSet((0,)), MEMS), (CpuSet((1,)), MEMS))
    world.reporter.resume(BODY)
    world.reporter.drifted(drift)
    world.report()
    assert world.published[-1].content.drift_count == 8
    assert world.drifts == [(drift, BODY)]


def test_an_ignored_local_copy_gets_an_event(world: World) -> None:
    world.reporter.ignored_copy(Obstacle("InvalidLocalCopy", "damaged"), BODY)
    ((event, regarding),) = world.posted
    assert (event.reason, event.note, regarding) == ("InvalidLocalCopy", "damaged", BODY)


def test_a_changed_cgroup_driver_gets_an_event(world: World) -> None:
    world.reporter.driver_changed()
    ((event, regarding),) = world.posted
    assert (event.reason, regarding) == ("CgroupDriverChanged", BODY)


def test_a_failed_pass_changes_only_generation_and_conditions(world: World) -> None:
    world.reporter.failed(Obstacle("InternalError", "a pass failed"))
    (report,) = world.published
    before = {"driftCount": 7, "containers": [{"podUID": "1"}], "observedGeneration": 0}
    wire = report.wire(before, "2030-01-01T00:00:00Z")
    ready = next(one for one in wire.pop("conditions") if one["type"] == "Ready")
    assert (ready["status"], ready["message"]) == ("False", "a pass failed")
    assert wire == {**before, "observedGeneration": 1}
    assert world.health.health().missing() == {"enforcement": "InternalError: a pass failed"}
