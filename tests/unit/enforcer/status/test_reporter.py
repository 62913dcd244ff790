"""What a pass reports: the status, Events and the probes."""

import errno
from types import SimpleNamespace
from typing import Any, cast

import pytest

from numapin_api.conditions import Obstacle
from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import CgroupStatus
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_daemon.probes import LoopHealth
from numapin_enforcer.assignment.acceptance import Acceptance
from numapin_enforcer.cgroups.apply import Failure
from numapin_enforcer.cgroups.errors import CgroupRefusedError
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version, tree_of
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.plan.desired import desire
from numapin_enforcer.plan.drift import Drift
from numapin_enforcer.status.conditions import PASSES_TO_STALL
from numapin_enforcer.status.population import RECHECK_SECONDS, STARTING_SECONDS
from numapin_enforcer.status.reporter import BackgroundReport, Kernel, PassResult, StatusReporter
from numapin_enforcer.status.status_builder import Report
from support.fakes.manual_clock import ManualClock

ID = "a" * 64
ROOT, POD = "kubepods", "kubepods/pod1"
CONTAINER = f"{POD}/{ID}"
NAMING, MEMS = CgroupNaming(Driver.CGROUPFS), MemSet((0,))
MACHINE = Topology(
    cpus=tuple(Cpu(cpu, cpu, 0, NO_CACHE, 0) for cpu in range(4)),
    numa_nodes=(NumaNode(0, 1 << 30),),
)
CONTAINERS = [
    {
        "podUID": "1",
        "namespace": "d",
        "pod": "p",
        "container": "c",
        "cpus": "3",
        "exclusive": True,
    }
]
BODY: dict[str, Any] = {
    "metadata": {"name": "n", "uid": "u1", "generation": 1},
    "spec": {"pools": {"reserved": "0", "shared": "0-2"}, "containers": CONTAINERS},
    "status": {"driftCount": 7},
}
FINE = PassResult(conflict="", unreadable=None, failures=(), failed_passes=0)


def background(**more: Any) -> BackgroundReport:
    nothing: dict[str, Any] = {
        "runtime": None,
        "stale_cpus": {},
        "stalled": (),
        "working": (),
        "note": "",
        "finishes_soon": False,
    }
    return BackgroundReport(**nothing | more)


def cgroup(path: str, cpus: str) -> Cgroup:
    found = CpuSet.parse(cpus)
    return Cgroup(path, found, MEMS, found, MEMS)


TREE = tree_of(Version.V2, ROOT, [cgroup(ROOT, "0-3"), cgroup(POD, "0-3"), cgroup(CONTAINER, "3")])


class World:
    """A reporter whose node accepted an assignment of CPU 3."""

    def __init__(self) -> None:
        self.acceptance = Acceptance("n")
        self.acceptance.offer(BODY, MACHINE)
        self.empty: set[str] = set()
        self.clock = ManualClock()
        self.published: list[Report] = []
        self.passed: list[bool] = []
        self.drifts: list[tuple[Drift, Any]] = []
        self.posted: list[tuple[Any, Any]] = []
        self.assignments = SimpleNamespace(body=BODY, problem="")
        self.copy = SimpleNamespace(problem="", restart_spec=None, obstacles=lambda: ())
        self.kubepods = SimpleNamespace(
            tree=SimpleNamespace(
                naming=NAMING, files=SimpleNamespace(has_tasks=lambda path: path not in self.empty)
            ),
            problem="",
            watch_problem="",
            version=Version.V2,
        )
        self.health = LoopHealth(60, self.clock)
        self.reporter = StatusReporter(
            assignments=cast("Any", self.assignments),
            acceptance=self.acceptance,
            local_copy=cast("Any", self.copy),
            kubepods=cast("Any", self.kubepods),
            machine=cast("Any", SimpleNamespace(topology=MACHINE)),
            publisher=cast(
                "Any",
                SimpleNamespace(
                    publish=self.published.append,
                    passed=lambda: self.passed.append(True),
                    problem="",
                ),
            ),
            events=cast(
                "Any",
                SimpleNamespace(
                    drifted=lambda *one: self.drifts.append(one),
                    post=lambda *one: self.posted.append(one),
                ),
            ),
            health=self.health,
            boot_id="boot-1",
            clock=self.clock,
        )

    def report(
        self, result: PassResult = FINE, tree: Tree | None = TREE, **more: Any
    ) -> tuple[str, str]:
        """Report a pass; returns reason and message of Ready."""
        accepted = self.acceptance.accepted
        assert accepted is not None
        names = {ID: "c"}
        desired = desire(accepted.spec, tree, NAMING, names, MACHINE) if tree else {}
        self.reporter.report(result, Kernel(tree, desired), background(**more))
        ready = next(one for one in self.published[-1].verdicts if one.type == "Ready")
        return ready.reason, ready.message

    @property
    def missing(self) -> dict[str, str]:
        return dict(self.health.health().missing())

    @property
    def exclusive(self) -> list[bool]:
        return [one.exclusive for one in self.published[-1].content.containers]


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


def test_a_container_is_listed_and_exclusive_once_it_has_a_process(world: World) -> None:
    """The enforcer fences a cgroup before its first process; the node stays Ready meanwhile."""
    world.empty = {CONTAINER}
    assert world.report()[0] == "Enforced"
    assert world.exclusive == []
    assert world.reporter.recheck_seconds == RECHECK_SECONDS
    world.empty = set()
    world.clock.stand_still(RECHECK_SECONDS)
    assert (world.report()[0], world.exclusive) == ("Enforced", [True])
    assert world.reporter.recheck_seconds is None


def test_a_container_whose_processes_are_elsewhere_is_named(world: World) -> None:
    """By design with gVisor, and on v1 after the last CPU of a container was offline."""
    world.report()
    world.empty = {CONTAINER}
    assert (world.report()[0], world.exclusive) == ("Enforced", [True])
    resynced = PassResult("", None, (), 0, resynced=True)
    assert (world.report(resynced)[0], world.exclusive) == ("Enforced", [])
    world.clock.stand_still(STARTING_SECONDS)
    reason, message = world.report()
    assert (reason, world.exclusive) == ("ProcessesElsewhere", [False])
    assert "container d/p/c has no process in its cgroup" in message


def test_nothing_is_published_while_an_update_ends_soon(world: World) -> None:
    world.report()
    world.report(finishes_soon=True)
    assert len(world.published) == 1


def test_a_container_is_not_exclusive_while_others_may_get_its_cpus(world: World) -> None:
    other = f"{ROOT}/pod2"
    tree = tree_of(Version.V2, ROOT, [*TREE.cgroups.values(), cgroup(other, "0-2")])
    world.report(tree=tree, stale_cpus={other: CpuSet((3,))})
    assert world.exclusive == [False]


def test_a_container_is_not_exclusive_until_the_assignment_is_saved(world: World) -> None:
    accepted = world.acceptance.accepted
    assert accepted is not None
    world.copy.restart_spec = accepted.spec.model_copy(update={"containers": ()})
    assert world.report()[0] == "Applying"
    assert world.exclusive == [False]
    world.copy.restart_spec = None
    assert world.report()[0] == "Enforced"
    assert world.exclusive == [True]


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


def test_a_node_whose_cgroups_are_not_found_is_stalled_if_anything_is_enforced(
    world: World,
) -> None:
    world.kubepods.problem, world.kubepods.tree = "found neither", None
    assert world.report(tree=None) == ("KubepodsNotFound", "found neither")
    assert world.missing == {
        "cgroups": "found neither",
        "enforcement": "KubepodsNotFound: found neither",
    }
    released = {**BODY, "spec": {"mode": "None"}, "metadata": BODY["metadata"] | {"generation": 2}}
    world.acceptance.offer(released, MACHINE)
    assert world.report(tree=None)[0] == "Enforced"


def test_a_set_that_the_kernel_does_not_grant_names_the_container(world: World) -> None:
    """A parent is restricted, or a foreign partition has the CPUs: v2 accepts the write."""
    tree = tree_of(Version.V2, ROOT, [cgroup(path, "0-2") for path in TREE.cgroups])
    reason, message = world.report(tree=tree)
    assert reason == "CPUsWithheld"
    assert "container d/p/c has CPU 0-2 instead of 3" in message
    assert "cgroup kubepods only 0-2" in message
    world.report(PassResult("", None, (), PASSES_TO_STALL), tree=tree)
    assert world.missing["enforcement"].startswith("CPUsWithheld")
    assert [one.type for one in world.published[-1].verdicts if one.holds] == ["Stalled"]


def test_a_shared_cgroup_with_other_cpus_is_not_ready(world: World) -> None:
    wide = tree_of(Version.V2, ROOT, [*TREE.cgroups.values(), cgroup(f"{ROOT}/podx", "0-1")])
    reason, message = world.report(tree=wide)
    assert (reason, f"cgroup {ROOT}/podx has CPU 0-1 instead of 0-2" in message) == (
        "CPUsWithheld",
        True,
    )


def test_a_stalled_node_is_not_ready(world: World) -> None:
    world.report(stalled=(Obstacle("Stuck", "help"),))
    assert world.missing == {"enforcement": "Stuck: help"}


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


def test_a_failed_pass_changes_only_generation_and_conditions(world: World) -> None:
    world.reporter.failed(Obstacle("InternalError", "a pass failed"))
    (report,) = world.published
    before = {"driftCount": 7, "containers": [{"podUID": "1"}], "observedGeneration": 0}
    wire = report.wire(before, "2030-01-01T00:00:00Z")
    ready = next(one for one in wire.pop("conditions") if one["type"] == "Ready")
    assert (ready["status"], ready["message"]) == ("False", "a pass failed")
    assert wire == {**before, "observedGeneration": 1}
    assert world.health.health().missing() == {"enforcement": "InternalError: a pass failed"}
