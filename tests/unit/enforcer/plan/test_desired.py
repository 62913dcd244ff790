from dataclasses import replace

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import NodeAssignmentSpec, Pools
from numapin_api.topology import NumaNode, Topology
from numapin_enforcer.cgroups.tree import Cgroup, Version, tree_of
from numapin_enforcer.plan.desired import desire
from support.values.specs_and_trees import (
    EXCLUSIVE,
    GUEST,
    NAMES,
    NAMING,
    POD,
    SANDBOX,
    assigned,
    cpus_of,
    machine,
    spec,
    tree,
)


def test_exclusive_containers_get_their_cpus_and_all_others_the_pool() -> None:
    assert cpus_of(spec(assigned("exclusive", "5-6")), tree(), NAMES) == {
        "kubepods": "0-7",
        "burstable": "0-3",
        "besteffort": "0-3",
        "pod1": "0-3,5-6",
        "exclusive": "5-6",
        "inner": "5-6",
        "guest": "0-3",
        "sandbox": "0-3",
    }


@pytest.mark.parametrize(
    ("shared", "reserved", "confined", "others"),
    [
        ("0-3", "0", "0", "0-3"),
        ("1-3", "0", "0", "1-3"),
        ("0-3", "0,7", "0,7", "0-3"),
        ("0-3", "8", "0-3", "0-3"),
        ("0-3", "", "0-3", "0-3"),
    ],
    ids=["in the pool", "strict", "more than the pool", "offline: the pool", "none: the pool"],
)
@pytest.mark.parametrize("names", [NAMES, {}], ids=["named", "unnamed"])
def test_confined_pods_have_the_reserved_cpus(
    shared: str, reserved: str, confined: str, others: str, names: dict[str, str]
) -> None:
    pools = Pools(reserved=CpuSet.parse(reserved), shared=CpuSet.parse(shared))
    one = NodeAssignmentSpec(pools=pools, confined=("1",))
    found = cpus_of(one, tree(), names)
    assert {found[name] for name in ("pod1", "exclusive", "inner", "guest", "sandbox")} == {
        confined
    }
    assert (found["burstable"], found["besteffort"]) == (others, others)
    free = cpus_of(replace(one, confined=("2",)), tree(), names)
    assert {free[name] for name in ("pod1", "guest", "sandbox")} == {others}


def test_a_pod_has_the_cpus_of_a_container_that_does_not_exist_yet() -> None:
    assert cpus_of(spec(assigned("to-come", "7")), tree(), NAMES)["pod1"] == "0-3,7"


def test_the_class_of_a_pod_has_the_cpus_of_its_future_container_as_well() -> None:
    every, both = CpuSet(range(8)), MemSet([0, 1])
    paths = ("kubepods", "kubepods/burstable", "kubepods/burstable/pod1")
    observed = tree_of(
        Version.V1, "kubepods", (Cgroup(one, every, both, every, both) for one in paths)
    )
    wanted = cpus_of(spec(assigned("to-come", "7")), observed, {})
    assert wanted == {"kubepods": "0-7", "burstable": "0-3,7", "pod1": "0-3,7"}


def test_an_unknown_cgroup_gets_the_pool_at_any_level() -> None:
    every, both = CpuSet(range(8)), MemSet([0, 1])
    paths = ("kubepods", "kubepods/odd", POD, f"{POD}/odd")
    sets = (every, both, every, both)
    observed = tree_of(Version.V1, "kubepods", (Cgroup(one, *sets) for one in paths))
    wanted = desire(spec(assigned("exclusive", "5-6")), observed, NAMING, {}, machine())
    assert {str(wanted[one].cpus) for one in ("kubepods/odd", f"{POD}/odd")} == {"0-3"}


@pytest.mark.parametrize(
    ("found", "names", "want"),
    [
        ("5-6", NAMES, "5-6"),
        ("0-7", {}, "0-3"),
        ("5-6", {}, "5-6"),
        ("5", {}, "5"),
        ("5-6", {GUEST: "exclusive"}, "0-3"),
        ("5-6", {EXCLUSIVE: "another"}, "0-3"),
    ],
    ids=[
        "named",
        "unnamed: shared",
        "unnamed, on exactly one set: that container",
        "unnamed, on part of a set: it keeps that",
        "another cgroup has the name",
        "not listed",
    ],
)
def test_the_runtime_names_the_container_of_a_cgroup(
    found: str, names: dict[str, str], want: str
) -> None:
    assert (
        cpus_of(spec(assigned("exclusive", "5-6")), tree(exclusive=found), names)["exclusive"]
        == want
    )


@pytest.mark.parametrize(
    ("exclusive_containers", "names", "want"),
    [
        ({"exclusive": "5-6"}, {GUEST: "guest", SANDBOX: ""}, "5-6"),
        ({"exclusive": "5-6", "guest": "7"}, {GUEST: "guest", SANDBOX: ""}, "5-6"),
        ({"exclusive": "5-6"}, {SANDBOX: ""}, "0-3"),
        ({"exclusive": "5-6"}, {GUEST: "exclusive", SANDBOX: ""}, "0-3"),
        ({"exclusive": "5", "more": "6"}, {GUEST: "guest", SANDBOX: ""}, "0-3"),
        ({"first": "5-6", "exclusive": "5-6"}, {GUEST: "guest", SANDBOX: ""}, "5-6"),
        ({"guest": "5-6", "exclusive": "5-6"}, {GUEST: "guest", SANDBOX: ""}, "0-3"),
    ],
    ids=[
        "only one exclusive container is missing",
        "another exclusive container exists",
        "another cgroup is unnamed",
        "no exclusive container is missing",
        "several exclusive containers are missing",
        "several with the same CPUs are missing",
        "the container that had the CPUs may still run",
    ],
)
def test_an_unnamed_container_waits_for_its_name_on_its_future_cpus(
    exclusive_containers: dict[str, str], names: dict[str, str], want: str
) -> None:
    one = spec(*(assigned(name, cpus) for name, cpus in exclusive_containers.items()))
    assert cpus_of(one, tree(), names)["exclusive"] == want


def test_an_unnamed_container_waits_only_if_exclusive_and_its_pod_has_names() -> None:
    one = spec(assigned("exclusive", "5-6"), assigned("helper", "7", exclusive=False))
    assert cpus_of(one, tree(), {GUEST: "guest", SANDBOX: ""})["exclusive"] == "5-6"
    every, both = CpuSet(range(8)), MemSet([0, 1])
    paths = ("kubepods", POD, f"{POD}/{EXCLUSIVE}")
    sets = (every, both, every, both)
    alone = tree_of(Version.V1, "kubepods", (Cgroup(each, *sets) for each in paths))
    assert cpus_of(one, alone, {})["exclusive"] == "0-3"


def test_an_unnamed_container_is_not_exclusive() -> None:
    one, names = spec(assigned("exclusive", "5-6")), {GUEST: "guest", SANDBOX: ""}
    for found in ("0-7", "5-6"):
        wanted = desire(one, tree(exclusive=found), NAMING, names, machine())[f"{POD}/{EXCLUSIVE}"]
        assert (str(wanted.cpus), wanted.container, wanted.exclusive_container) == ("5-6", None, "")


def test_a_nested_cgroup_follows_its_container_and_stays_narrower_if_it_was() -> None:
    exclusive = spec(assigned("exclusive", "4-6"))
    assert cpus_of(exclusive, tree(exclusive="4-7", inner="4-7"), NAMES)["inner"] == "4-6"
    assert cpus_of(exclusive, tree(exclusive="4-7", inner="6-7"), NAMES)["inner"] == "6"
    assert cpus_of(exclusive, tree(exclusive="4-7", inner="7"), NAMES)["inner"] == "4-6"
    assert cpus_of(exclusive, tree(exclusive="4", inner="4"), NAMES)["inner"] == "4-6"


@pytest.mark.parametrize(
    ("container", "inner", "assigns", "want"),
    [
        ("0", "0", "", "0"),
        ("0", "0", "1", "1"),
        ("0-1", "0", "", "0"),
        ("0-1", "0-1", "", "0-1"),
        ("0-1", "0", "1", "1"),
    ],
)
def test_the_memory_of_a_nested_cgroup_follows_its_container(
    container: str, inner: str, assigns: str, want: str
) -> None:
    every, path = CpuSet(range(8)), f"{POD}/{EXCLUSIVE}"
    mems = {"kubepods": "0-1", POD: "0-1", path: container, f"{path}/inner": inner}
    sets = {each: (every, MemSet.parse(text)) for each, text in mems.items()}
    observed = tree_of(
        Version.V1, "kubepods", (Cgroup(each, *both, *both) for each, both in sets.items())
    )
    wanted = desire(spec(assigned("exclusive", "5", assigns)), observed, NAMING, NAMES, machine())
    nested = wanted[f"{path}/inner"]
    assert (str(nested.mems), nested.exclusive_container) == (want, "1/exclusive")


def test_memory_is_bound_as_the_spec_says_else_to_all_numa_nodes() -> None:
    one = spec(assigned("exclusive", "5", "1"), assigned("guest", "", "0", exclusive=False))
    wanted = desire(one, tree(), NAMING, NAMES, machine())
    mems = {path.rpartition("/")[2]: str(want.mems) for path, want in wanted.items()}
    assert (mems[EXCLUSIVE], mems["inner"], mems[GUEST]) == ("1", "1", "0")
    assert {mems[name] for name in ("kubepods", "burstable", "pod1", SANDBOX)} == {"0-1"}
    assert wanted[f"{POD}/{EXCLUSIVE}"].exclusive_container == "1/exclusive"
    assert not wanted[f"{POD}/{GUEST}"].exclusive_container


@pytest.mark.parametrize(
    ("offline", "exclusive", "alone", "shared"),
    [
        ("5", "6", True, "0-3"),
        ("5-6", "0-3", False, "0-3"),
        ("0-3", "5-6", True, "4,7"),
        ("0-4,7", "5-6", False, "5-6"),
    ],
    ids=["some exclusive", "all exclusive", "the pool", "all but the exclusive"],
)
def test_offline_cpus_are_left_out(offline: str, exclusive: str, alone: bool, shared: str) -> None:
    one = spec(assigned("exclusive", "5-6"))
    wanted = desire(one, tree(), NAMING, NAMES, machine(offline))
    mine = wanted[f"{POD}/{EXCLUSIVE}"]
    assert (str(mine.cpus), mine.exclusive) == (exclusive, alone)
    assert str(wanted[f"{POD}/{GUEST}"].cpus) == shared


def test_an_unnamed_container_is_identified_by_its_online_cpus() -> None:
    wanted = desire(
        spec(assigned("exclusive", "5-6")), tree(exclusive="6"), NAMING, {}, machine("5")
    )
    assert wanted[f"{POD}/{EXCLUSIVE}"].exclusive_container == "1/exclusive"


@pytest.mark.parametrize(
    ("found", "now", "want"),
    [
        ("4", "4,7", "4"),
        ("4,7", "7", "7"),
        ("4-6", "5,7", "5"),
        ("4", "7", "0-3"),
        ("3-4", "4,7", "0-3"),
        ("0-7", "4,7", "0-3"),
    ],
    ids=[
        "it is to get new CPUs",
        "its old CPUs leave",
        "one stays",
        "it has none of them",
        "one is in the pool",
        "it is new",
    ],
)
def test_an_unnamed_container_keeps_those_of_its_cpus_that_it_has(
    found: str, now: str, want: str
) -> None:
    """An enforcer starts during a move, and the runtime has not answered yet."""
    one, observed = spec(assigned("exclusive", now, "1")), tree(exclusive=found, sandbox="0-3")
    wanted = desire(one, observed, NAMING, {}, machine())
    for path in (f"{POD}/{EXCLUSIVE}", f"{POD}/{EXCLUSIVE}/inner"):
        assert (str(wanted[path].cpus), wanted[path].exclusive_container) == (want, "")
    assert str(wanted[f"{POD}/{SANDBOX}"].cpus) == "0-3"
    assert str(wanted[f"{POD}/{EXCLUSIVE}"].mems) == "0-1"


def test_an_unnamed_container_keeps_no_cpus_of_one_that_is_named() -> None:
    one = spec(assigned("guest", "4,7"), assigned("exclusive", "5"))
    found = cpus_of(one, tree(exclusive="4", guest="4,7", sandbox="0-3"), {GUEST: "guest"})
    assert (found["exclusive"], found["guest"]) == ("0-3", "4,7")


def test_a_listed_container_without_exclusive_cpus_is_not_exclusive() -> None:
    one = spec(assigned("exclusive", "5-6", exclusive=False))
    wanted = desire(one, tree(), NAMING, NAMES, machine())[f"{POD}/{EXCLUSIVE}"]
    assert (str(wanted.cpus), wanted.exclusive, wanted.exclusive_container) == ("5-6", False, "")
    assert cpus_of(one, tree(exclusive="5-6"), {})["exclusive"] == "0-3"


def test_numa_nodes_without_memory_are_left_out() -> None:
    left = Topology(machine().cpus, (NumaNode(0, 2**30), NumaNode(1, 0)))
    one = spec(assigned("exclusive", "5", "1"), assigned("guest", "", "0-1", exclusive=False))
    wanted = desire(one, tree(), NAMING, NAMES, left)
    assert str(wanted[f"{POD}/{GUEST}"].mems) == "0"
    assert str(wanted[f"{POD}/{EXCLUSIVE}"].mems) == "0-1", "as found: nothing is left to bind to"


def test_if_the_pool_is_offline_the_cpus_that_are_not_exclusive_replace_it() -> None:
    one = spec(assigned("exclusive", "5-6"), assigned("guest", "4,7", exclusive=False))
    wanted = desire(one, tree(), NAMING, NAMES, machine("0-3"))
    assert str(wanted[f"{POD}/{SANDBOX}"].cpus) == "4,7"
    assert str(wanted[f"{POD}/{EXCLUSIVE}"].cpus) == "5-6"


def test_kubepods_is_unchanged_if_it_contains_what_is_desired() -> None:
    one = spec(assigned("exclusive", "5"))
    assert cpus_of(one, tree(kubepods="0-6"), NAMES)["kubepods"] == "0-6"
    assert cpus_of(one, tree(kubepods="0-4"), NAMES)["kubepods"] == "0-7"


def test_a_container_and_its_replacement_are_the_same_exclusive_container() -> None:
    observed = tree(exclusive="5-6")
    names = {EXCLUSIVE: "exclusive", GUEST: "exclusive"}
    wanted = desire(spec(assigned("exclusive", "5-6")), observed, NAMING, names, machine())
    assert (
        wanted[f"{POD}/{EXCLUSIVE}"].exclusive_container
        == wanted[f"{POD}/{GUEST}"].exclusive_container
        == "1/exclusive"
    )
