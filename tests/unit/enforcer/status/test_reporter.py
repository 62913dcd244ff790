"""What a pass reports: the status, Events and the probes."""

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from numapin_api.conditions.reasons import Obstacle
from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import CgroupStatus
from numapin_enforcer.assignment.local_copy import PATIENCE_SECONDS, LocalCopy
from numapin_enforcer.cgroups.apply import Failure
from numapin_enforcer.cgroups.errors import CgroupRefusedError
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.status.report import NO_ANSWER_YET
from numapin_enforcer.status.state import Part, State
from support.fakes.worlds.reporter_world import BODY, MACHINE, POD, World


@pytest.fixture
def world() -> World:
    return World()


def test_a_pass_is_published_with_what_the_kernel_has(world: World) -> None:
    assert world.report()[0] == "Enforced"
    content = world.last.content
    assert [(str(one.cpus), one.exclusive) for one in content.containers] == [("3", True)]
    assert content.observed_generation == 1
    assert content.cgroup == CgroupStatus(version=2, driver="cgroupfs")
    assert world.missing == {}


def test_a_status_says_which_boot_it_is_from_and_when_all_was_checked(world: World) -> None:
    world.report()
    assert (world.last.content.boot_id, world.published.passes) == ("boot-1", 0)
    world.report(world.begin(full_resync=True))
    assert world.published.passes == 1


def test_an_unreadable_tree_leaves_the_reported_containers(world: World) -> None:
    one = world.begin(None, unreadable=Obstacle("CgroupsUnreadable", "no"))
    assert world.report(one) == ("CgroupsUnreadable", "no")
    assert world.last.blind


def test_nothing_is_published_while_an_update_ends_soon(world: World) -> None:
    world.report()
    world.report(states={Part.SLICES: State(finishes_soon=True)})
    assert len(world.published.reports) == 1


def test_a_new_assignment_is_reported_once_it_is_on_disk_and_not_before(world: World) -> None:
    accepted, local_copy = world.acceptance.accepted, world.inputs.local_copy
    assert accepted is not None
    local_copy.want(replace(accepted, generation=2))
    world.reporter.report(world.begin(), world.inputs.facts(), world.inputs.states())
    assert world.published.reports == []
    assert 0 < world.inputs.recheck_seconds()[0] <= PATIENCE_SECONDS
    local_copy.want(accepted)
    world.report()
    assert (world.exclusive, world.inputs.recheck_seconds()) == ([True], [])


def test_what_this_process_lacks_is_said_while_all_is_enforced(world: World) -> None:
    world.inputs.remarks = ("no real-time priority", "nothing is sent by OTLP")
    world.inputs.unserved = lambda: "exporters get no answer"
    reason, message = world.report()
    assert reason == "Enforced"
    assert message.endswith(
        "no real-time priority; nothing is sent by OTLP; exporters get no answer"
    )


def test_what_the_node_is_planned_with_is_said_if_it_is_a_part(world: World) -> None:
    world.machine.limits = "planned with CPU 2-3 of 0-3: cgroup kubepods has no others"
    reason, message = world.report()
    assert reason == "Enforced"
    assert message.endswith("planned with CPU 2-3 of 0-3: cgroup kubepods has no others")


def test_a_conflict_is_reported_before_all_else(world: World) -> None:
    unreadable = Obstacle("CgroupsUnreadable", "no")
    one = world.begin(conflict="the kubelet pins", unreadable=unreadable)
    assert world.report(one) == ("KubeletStaticPolicy", "the kubelet pins")


def test_a_refused_write_is_reported(world: World) -> None:
    error = CgroupRefusedError(POD, "3", errno.EBUSY, "busy")
    failure = Failure(Write(POD, CpuSet((3,)), Step.NARROW), error)
    one = world.begin(failed_passes=1)
    one = replace(one, result=replace(one.result, failures=(failure,)))
    assert world.report(one)[0] == "CgroupWriteFailed"


def test_obstacles_of_followers_are_reported(world: World) -> None:
    stalled, working = Obstacle("Stuck", "help"), Obstacle("Busy", "wait")
    busy, stuck = State(working=(working,)), State((stalled,), (working,))
    assert world.report(states={Part.MEMORY: busy}) == ("Busy", "wait")
    assert world.report(states={Part.MEMORY: stuck}) == ("Stuck", "help")


def test_fields_of_a_later_release_are_named(world: World) -> None:
    metadata = BODY["metadata"] | {"generation": 2}
    world.acceptance.offer(
        BODY | {"metadata": metadata, "spec": BODY["spec"] | {"idle": 1}}, MACHINE
    )
    world.report()
    ready = world.last.verdicts[0]
    assert ready.holds
    assert ready.message.endswith("; this enforcer does not know spec.idle: no effect")


def test_an_incomplete_watch_is_reported(world: World) -> None:
    world.watch.problem = "too many watches"
    assert world.report() == ("WatchIncomplete", "too many watches")


@pytest.mark.parametrize("name", ["API server", "local copy"])
def test_a_problem_keeps_the_enforcer_from_being_ready(world: World, name: str) -> None:
    world.report(problems={name: "away"})
    assert world.missing == {name: "away"}


def test_a_stalled_node_is_not_ready(world: World) -> None:
    world.report(states={Part.MEMORY: State((Obstacle("Stuck", "help"),))})
    assert world.missing == {"enforcement": "Stuck: help"}


def test_before_the_runtime_has_answered_the_enforcer_is_not_ready(world: World) -> None:
    """A wrong socket may take the question and never answer."""
    names = world.followers.containers.names
    version, names.runtime_version = names.runtime_version, None
    world.report()
    assert world.missing == {"container runtime": NO_ANSWER_YET}
    names.runtime_version = version
    world.report()
    assert world.missing == {}


def test_an_ignored_local_copy_gets_an_event(world: World, tmp_path: Path) -> None:
    copy = LocalCopy(tmp_path, "n")
    copy.path.write_text("{")
    world.acceptance.restore(copy)
    for _ in range(2):
        world.inputs.accept()
    assert [one.reason for one in world.posted.events] == ["InvalidLocalCopy"]


def test_a_changed_cgroup_driver_gets_an_event(world: World) -> None:
    world.inputs.note_driver_change()
    assert [one.reason for one in world.posted.events] == ["CgroupDriverChanged"]


def test_a_failed_pass_changes_only_generation_and_conditions(world: World) -> None:
    world.reporter.failed(world.acceptance.judged, RuntimeError("broken"))
    (report,) = world.published.reports
    before = {"driftCount": 7, "containers": [{"podUID": "1"}], "observedGeneration": 0}
    wire = report.wire(before, "2030-01-01T00:00:00Z")
    ready = next(one for one in wire.pop("conditions") if one["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "InternalError")
    assert wire == {**before, "observedGeneration": 1}
    assert world.missing["enforcement"].startswith("InternalError: a pass over the cgroups")


def test_no_part_hides_what_another_one_says(world: World) -> None:
    assert world.inputs.states().keys().isdisjoint(world.followers.states().keys())
