"""Which writes of a plan are left to the runtime."""

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment
from numapin_enforcer.cgroups.tree import Cgroup, Version, tree_of
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.writes.growth import leave_growth
from numapin_enforcer.plan.writes.ordered import NOTHING_HELD, Held, Plan, plan

ROOT, OTHER, POD = "kubepods", "kubepods/pod2", "kubepods/pod1"
CONTAINER, NESTED = f"{POD}/c", f"{POD}/c/inside"
MEMS = MemSet([0])


def cpus(text: str) -> CpuSet:
    return CpuSet.parse(text)


def planned(
    has: str,
    gets: str,
    by_runtime: set[str],
    *,
    held: Held = NOTHING_HELD,
    exclusive: bool = True,
    version: Version = Version.V1,
) -> Plan:
    """The plan for a container that has some CPUs and gets others, which another pod has now."""
    sets = {ROOT: "0-3", OTHER: "0-3", POD: has, CONTAINER: has, NESTED: has}
    tree = tree_of(
        version,
        ROOT,
        [Cgroup(path, cpus(one), MEMS, cpus(one), MEMS) for path, one in sets.items()],
    )
    owner = ContainerAssignment(
        pod_uid="1", namespace="d", pod="p", container="c", cpus=cpus(gets), exclusive=exclusive
    )
    own = Desired(cpus(gets), MEMS, owner, exclusive)
    wanted = {
        ROOT: Desired(cpus("0-3"), MEMS),
        OTHER: Desired(cpus("0-3") - cpus(gets), MEMS),
        **dict.fromkeys((POD, CONTAINER, NESTED), own),
    }
    return leave_growth(plan(tree, wanted, held), by_runtime, tree, wanted, held)


def writes(steps: Plan) -> list[tuple[str, str]]:
    return [(one.path, str(one.value)) for one in steps.writes]


@pytest.mark.parametrize("version", Version)
def test_what_a_container_and_cgroups_in_it_only_gain_is_left(version: Version) -> None:
    found = planned("2", "2-3", {CONTAINER}, version=version)
    assert writes(found) == [(OTHER, "0-1"), (POD, "2-3")]
    assert found.left == {CONTAINER}


@pytest.mark.parametrize("by_runtime", [set[str](), {OTHER}, {f"{POD}/gone"}])
def test_all_is_written_for_containers_that_the_runtime_cannot_be_sent(
    by_runtime: set[str],
) -> None:
    found = planned("2", "2-3", by_runtime)
    assert (CONTAINER, "2-3") in writes(found)
    assert not found.left


@pytest.mark.parametrize(("has", "gets"), [("1", "0"), ("1-2", "2-3"), ("2-3", "3")])
def test_a_container_that_loses_cpus_too_is_written_at_once(has: str, gets: str) -> None:
    found = planned(has, gets, {CONTAINER})
    assert found == planned(has, gets, set())
    assert [value for path, value in writes(found) if path == CONTAINER][-1] == gets


def test_what_it_had_is_given_back_at_once() -> None:
    assert not planned("2", "2-3", {CONTAINER}, held={CONTAINER: cpus("2-3")}).left
    assert planned("2", "2-3", {CONTAINER}, held={CONTAINER: cpus("2")}).left == {CONTAINER}


def test_a_shared_container_is_written_at_once() -> None:
    assert not planned("2", "2-3", {CONTAINER}, exclusive=False).left
