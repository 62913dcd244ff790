"""What a pass reports of containers that are not exclusive."""

from dataclasses import replace

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_enforcer.cgroups.tree import Version, tree_of
from numapin_enforcer.status.in_force.exclusivity import Evidence
from numapin_enforcer.status.in_force.population import RECHECK_SECONDS, STARTING_SECONDS
from numapin_enforcer.status.obstacles import PASSES_TO_STALL
from numapin_enforcer.status.state import Part, State
from numapin_enforcer.threads.findings import InheritedMask, WideThreads
from support.fakes.worlds.reporter_world import (
    BODY,
    CONTAINER,
    CONTAINERS,
    ID,
    MACHINE,
    POD,
    ROOT,
    TREE,
    World,
    cgroup,
)


@pytest.fixture
def world() -> World:
    return World()


def test_a_container_is_listed_and_exclusive_once_it_has_a_process(world: World) -> None:
    """The enforcer fences a cgroup before its first process; the node stays Ready meanwhile."""
    world.model.empty = {CONTAINER}
    assert world.report()[0] == "Enforced"
    assert world.exclusive == []
    assert world.recheck_seconds() == [RECHECK_SECONDS]
    world.model.empty = set()
    world.clock.stand_still(RECHECK_SECONDS)
    assert (world.report()[0], world.exclusive) == ("Enforced", [True])
    assert world.recheck_seconds() == []


def test_a_container_whose_processes_are_elsewhere_is_named(world: World) -> None:
    """By design with gVisor, and on v1 after the last CPU of a container was offline."""
    world.report()
    world.model.empty = {CONTAINER}
    assert (world.report()[0], world.exclusive) == ("Enforced", [True])
    resynced = world.begin(full_resync=True)
    assert (world.report(resynced)[0], world.exclusive) == ("Enforced", [])
    world.clock.stand_still(STARTING_SECONDS)
    assert (world.report()[0], world.exclusive) == ("Enforced", []), "the container has ended"
    finder = world.followers.outside.finder
    finder.running, finder.listed_at = {ID: "d/p/c"}, world.clock.monotonic()
    reason, message = world.report()
    assert (reason, world.exclusive) == ("ProcessesElsewhere", [False])
    assert "container d/p/c has no process in its cgroup" in message


def test_a_list_from_before_a_container_ended_is_no_evidence(world: World) -> None:
    """It may be a minute old. The processes of a pod that is deleted end before its cgroup does."""
    listed_at = world.clock.monotonic()
    world.report()
    world.model.empty = {CONTAINER}
    resynced = world.begin(full_resync=True)
    world.report(resynced)
    assert world.population.newest_deserted_at is None
    world.clock.stand_still(STARTING_SECONDS)
    finder = world.followers.outside.finder
    finder.running, finder.listed_at = {ID: "d/p/c"}, listed_at
    assert (world.report()[0], world.exclusive) == ("Enforced", [])
    assert world.population.newest_deserted_at == listed_at + STARTING_SECONDS


def test_a_container_is_not_exclusive_while_others_may_get_its_cpus(world: World) -> None:
    other = f"{ROOT}/pod2"
    tree = tree_of(Version.V2, ROOT, [*TREE.cgroups.values(), cgroup(other, "0-2")])
    slices = State(stale_cpus={other: CpuSet((3,))})
    world.report(world.begin(tree), {Part.SLICES: slices})
    assert world.exclusive == [False]


@pytest.mark.parametrize(
    ("names", "who"),
    [({"b" * 64: "d/web/app"}, "container d/web/app"), ({}, f"cgroup {ROOT}/pod2/{'b' * 64}")],
)
def test_a_container_whose_cpus_threads_of_another_use_is_not_exclusive(
    world: World, names: dict[str, str], who: str
) -> None:
    other = f"{ROOT}/pod2/{'b' * 64}"
    shared = [cgroup(path, "0-2") for path in (f"{ROOT}/pod2", other, f"{other}/inner")]
    tree = tree_of(Version.V2, ROOT, [*TREE.cgroups.values(), *shared])
    wide = WideThreads(f"{other}/inner", CpuSet.parse("3"), "iou-wrk-77", (77,))
    reason, message = world.report(world.begin(tree, wide=(wide,)), running=names)
    assert (reason, world.exclusive) == ("CPUsShared", [False])
    assert message.startswith(
        f"not as in the spec: container d/p/c shares CPU 3 with threads of {who}, such as "
        "'iou-wrk-77'"
    )
    assert "seccomp profile RuntimeDefault" in message
    assert "kernel.io_uring_disabled=2" in message
    elsewhere = replace(wide, cpus=CpuSet.parse("1-2"))
    assert world.report(world.begin(tree, wide=(elsewhere,)))[0] == "Enforced"
    own = replace(wide, path=CONTAINER, cpus=CpuSet.parse("2-3"))
    assert world.report(world.begin(tree, wide=(own,)))[0] == "Enforced"
    assert world.exclusive == [True]


def test_a_node_with_foreign_tasks_is_ready_and_says_so(world: World) -> None:
    """A program of the host may use any CPU: the spec is in force nevertheless."""
    reason, message = world.report(world.begin(foreign=("d/p/c",)))
    assert (reason, world.exclusive) == ("ForeignTasks", [True])
    assert "other tasks use the CPUs of container d/p/c" in message
    assert world.missing == {}
    assert world.report()[0] == "Enforced"


def test_a_container_that_inherited_fewer_cpus_is_not_exclusive(world: World) -> None:
    """Its cgroup has CPUs 2-3, and the runtime was started with CPUAffinity=0-2."""
    container = {**CONTAINERS[0], "cpus": "2-3"}
    pools = {"reserved": "0", "shared": "0-1"}
    body = {"metadata": BODY["metadata"] | {"generation": 2}}
    world.acceptance.offer({**body, "spec": {"pools": pools, "containers": [container]}}, MACHINE)
    found = [cgroup(ROOT, "0-3"), cgroup(POD, "0-3"), cgroup(CONTAINER, "2-3")]
    tree = tree_of(Version.V2, ROOT, found)
    mask = InheritedMask(CONTAINER, CpuSet.parse("0-2"), "containerd-shim")
    reason, message = world.report(world.begin(tree, inherited=(mask,)))
    assert (reason, world.exclusive) == ("InheritedAffinity", [False])
    assert message.startswith(
        "not as in the spec: container d/p/c may use only CPU 2 of 2-3: it has inherited the CPU "
        "affinity 0-2 of the container runtime (containerd-shim): update runc to 1.2.7, 1.3.1"
    )
    assert "CPUAffinity=" in message
    assert [one.type for one in world.last.verdicts if one.holds] == ["Stalled"]
    content = world.last.content
    assert [str(one.cpus) for one in content.containers] == ["2-3"], "what its cgroup has"
    assert content.pools is not None
    assert content.pools.exclusive == CpuSet()
    for cpus in ("0-1", "2-3", "0-3"):  # the kernel lets it use both
        other = replace(mask, cpus=CpuSet.parse(cpus))
        assert world.report(world.begin(tree, inherited=(other,)))[0] == "Enforced"
        assert world.exclusive == [True]


@pytest.mark.parametrize("names", [{"b" * 64: "d/web/app"}, {}])
def test_shared_containers_that_inherited_fewer_cpus_are_noted(
    world: World, names: dict[str, str]
) -> None:
    other = f"{ROOT}/pod2/{'b' * 64}"
    paths = (f"{ROOT}/pod2", other, f"{other}/inner")
    tree = tree_of(Version.V2, ROOT, [*TREE.cgroups.values(), *(cgroup(p, "0-2") for p in paths)])
    mask = InheritedMask(f"{other}/inner", CpuSet.parse("0-1"), "conmon")
    gone = replace(mask, path=f"{ROOT}/pod3/{'c' * 64}")
    reason, message = world.report(world.begin(tree, inherited=(gone, mask)), running=names)
    assert (reason, world.exclusive, world.missing) == ("InheritedAffinity", [True], {})
    who = "container d/web/app" if names else f"cgroup {other}"
    assert f"shared containers may use only CPU 0-1 of 0-2, such as {who}: they have" in message
    assert "update runc to 1.2.7" in message
    assert "1 container with exclusive CPUs" in message
    foreign = world.report(world.begin(tree, inherited=(mask,), foreign=("d/p/c",)))
    assert foreign[0] == "ForeignTasks"
    assert "shared containers may use only" in foreign[1]
    assert world.report(world.begin(tree))[0] == "Enforced"


def test_isolated_cpus_that_a_process_never_had_are_no_inheritance(world: World) -> None:
    """Without a change of its set, a process stays off them, whatever the runtime resets."""
    isolated = replace(MACHINE, isolated=CpuSet.parse("3"))
    world.machine.topology = isolated
    other = f"{ROOT}/pod2/{'b' * 64}"
    mask = InheritedMask(other, CpuSet.parse("0-2"), "containerd-shim")
    body = {"metadata": BODY["metadata"] | {"generation": 2}}
    world.acceptance.offer({**body, "spec": {"pools": {"reserved": "0", "shared": "0-3"}}}, MACHINE)
    found = [cgroup(path, "0-3") for path in (ROOT, f"{ROOT}/pod2", other)]
    tree = tree_of(Version.V2, ROOT, found)
    assert world.report(world.begin(tree, inherited=(mask,)))[0] == "Enforced"
    less = replace(mask, cpus=CpuSet.parse("0-1"))
    assert world.report(world.begin(tree, inherited=(less,)))[0] == "InheritedAffinity"


def test_threads_that_are_not_looked_at_are_noted(world: World) -> None:
    assert world.report(world.begin(unseen="some threads are not seen"))[1].endswith(
        "threads are not seen"
    )


def test_a_container_is_not_exclusive_until_the_assignment_is_saved(world: World) -> None:
    assert world.report(evidence=Evidence(restart_spec=NodeAssignmentSpec()))[0] == "Applying"
    assert world.exclusive == [False]
    assert world.report()[0] == "Enforced"
    assert world.exclusive == [True]


def test_a_node_whose_cgroups_are_not_found_is_stalled_if_anything_is_enforced(
    world: World,
) -> None:
    world.kubepods.problem, world.kubepods.tree = "found neither", None
    assert world.report(world.begin(None)) == ("KubepodsNotFound", "found neither")
    assert world.missing == {
        "cgroups": "found neither",
        "enforcement": "KubepodsNotFound: found neither",
    }
    released = {**BODY, "spec": {"mode": "None"}, "metadata": BODY["metadata"] | {"generation": 2}}
    world.acceptance.offer(released, MACHINE)
    assert world.report(world.begin(None))[0] == "Enforced"


def test_a_set_that_the_kernel_does_not_grant_names_the_container(world: World) -> None:
    """A parent is restricted, or a foreign partition has the CPUs: v2 accepts the write."""
    tree = tree_of(Version.V2, ROOT, [cgroup(path, "0-2") for path in TREE.cgroups])
    reason, message = world.report(world.begin(tree))
    assert reason == "CPUsWithheld"
    assert "container d/p/c has CPU 0-2 instead of 3" in message
    assert "cgroup kubepods only 0-2" in message
    world.report(world.begin(tree, PASSES_TO_STALL))
    assert world.missing["enforcement"].startswith("CPUsWithheld")
    assert [one.type for one in world.last.verdicts if one.holds] == ["Stalled"]


def test_a_shared_cgroup_with_other_cpus_is_not_ready(world: World) -> None:
    wide = tree_of(Version.V2, ROOT, [*TREE.cgroups.values(), cgroup(f"{ROOT}/podx", "0-1")])
    reason, message = world.report(world.begin(wide))
    assert (reason, f"cgroup {ROOT}/podx has CPU 0-1 instead of 0-2" in message) == (
        "CPUsWithheld",
        True,
    )
