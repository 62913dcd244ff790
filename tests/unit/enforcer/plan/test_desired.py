import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.topology import NumaNode, Topology
from numapin_enforcer.cgroups.tree import Cgroup, Version, tree_of
from numapin_enforcer.plan.desired import desire
from support.values.specs_and_trees import (
    GUEST,
    NAMES,
    NAMING,
    OWNER,
    POD,
    SANDBOX,
    assigned,
    cpus_of,
    machine,
    spec,
    tree,
)


def test_owners_have_their_own_and_everybody_else_the_pool() -> None:
    assert cpus_of(spec(assigned("owner", "5-6")), tree(), NAMES) == {
        "kubepods": "0-7",
        "burstable": "0-3",
        "besteffort": "0-3",
        "pod1": "0-3,5-6",
        "owner": "5-6",
        "inner": "5-6",
        "guest": "0-3",
        "sandbox": "0-3",
    }


def test_a_pod_has_room_for_an_owner_that_is_not_there_yet() -> None:
    assert cpus_of(spec(assigned("to-come", "7")), tree(), NAMES)["pod1"] == "0-3,7"


def test_a_pod_of_a_class_has_room_as_well_and_the_class_around_it() -> None:
    every, both = CpuSet(range(8)), MemSet([0, 1])
    paths = ("kubepods", "kubepods/burstable", "kubepods/burstable/pod1")
    observed = tree_of(
        Version.V1, "kubepods", (Cgroup(one, every, both, every, both) for one in paths)
    )
    wanted = cpus_of(spec(assigned("to-come", "7")), observed, {})
    assert wanted == {"kubepods": "0-7", "burstable": "0-3,7", "pod1": "0-3,7"}


def test_what_nobody_knows_shares_wherever_it_is() -> None:
    every, both = CpuSet(range(8)), MemSet([0, 1])
    paths = ("kubepods", "kubepods/odd", POD, f"{POD}/odd")
    sets = (every, both, every, both)
    observed = tree_of(Version.V1, "kubepods", (Cgroup(one, *sets) for one in paths))
    wanted = desire(spec(assigned("owner", "5-6")), observed, NAMING, {}, machine())
    assert {str(wanted[one].cpus) for one in ("kubepods/odd", f"{POD}/odd")} == {"0-3"}


@pytest.mark.parametrize(
    ("found", "names", "want"),
    [
        ("5-6", NAMES, "5-6"),
        ("0-7", {}, "0-3"),
        ("5-6", {}, "5-6"),
        ("5", {}, "0-3"),
        ("5-6", {GUEST: "owner"}, "0-3"),
        ("5-6", {OWNER: "another"}, "0-3"),
    ],
    ids=[
        "named",
        "not named yet: shared",
        "not named, but on the very set of one: it is that one",
        "not named, on a part of a set: shared",
        "the name is another cgroup's",
        "not listed",
    ],
)
def test_who_a_cgroup_is_comes_from_the_runtime(
    found: str, names: dict[str, str], want: str
) -> None:
    assert cpus_of(spec(assigned("owner", "5-6")), tree(owner=found), names)["owner"] == want


@pytest.mark.parametrize(
    ("owners", "names", "want"),
    [
        ({"owner": "5-6"}, {GUEST: "guest", SANDBOX: ""}, "5-6"),
        ({"owner": "5-6", "guest": "7"}, {GUEST: "guest", SANDBOX: ""}, "5-6"),
        ({"owner": "5-6"}, {SANDBOX: ""}, "0-3"),
        ({"owner": "5-6"}, {GUEST: "owner", SANDBOX: ""}, "0-3"),
        ({"owner": "5", "more": "6"}, {GUEST: "guest", SANDBOX: ""}, "0-3"),
        ({"first": "5-6", "owner": "5-6"}, {GUEST: "guest", SANDBOX: ""}, "5-6"),
        ({"guest": "5-6", "owner": "5-6"}, {GUEST: "guest", SANDBOX: ""}, "0-3"),
    ],
    ids=[
        "it can only be the owner who is missing",
        "another owner is there",
        "another has no name either",
        "no owner is missing",
        "several owners are missing",
        "several with the same CPUs are missing",
        "who has the CPUs before him may still run",
    ],
)
def test_a_newborn_waits_for_its_name_where_it_will_be(
    owners: dict[str, str], names: dict[str, str], want: str
) -> None:
    one = spec(*(assigned(name, cpus) for name, cpus in owners.items()))
    assert cpus_of(one, tree(), names)["owner"] == want


def test_a_newborn_waits_only_for_an_owner_and_where_its_pod_was_met() -> None:
    one = spec(assigned("owner", "5-6"), assigned("helper", "7", exclusive=False))
    assert cpus_of(one, tree(), {GUEST: "guest", SANDBOX: ""})["owner"] == "5-6"
    every, both = CpuSet(range(8)), MemSet([0, 1])
    paths = ("kubepods", POD, f"{POD}/{OWNER}")
    sets = (every, both, every, both)
    alone = tree_of(Version.V1, "kubepods", (Cgroup(each, *sets) for each in paths))
    assert cpus_of(one, alone, {})["owner"] == "0-3"


def test_a_newborn_is_nobody_until_it_has_its_name() -> None:
    one, names = spec(assigned("owner", "5-6")), {GUEST: "guest", SANDBOX: ""}
    for found in ("0-7", "5-6"):
        wanted = desire(one, tree(owner=found), NAMING, names, machine())[f"{POD}/{OWNER}"]
        assert (str(wanted.cpus), wanted.container, wanted.owner) == ("5-6", None, "")


def test_a_nested_cgroup_goes_with_its_container_but_keeps_a_choice_of_its_own() -> None:
    owner = spec(assigned("owner", "4-6"))
    assert cpus_of(owner, tree(owner="4-7", inner="4-7"), NAMES)["inner"] == "4-6"
    assert cpus_of(owner, tree(owner="4-7", inner="6-7"), NAMES)["inner"] == "6"
    assert cpus_of(owner, tree(owner="4-7", inner="7"), NAMES)["inner"] == "4-6"
    assert cpus_of(owner, tree(owner="4", inner="4"), NAMES)["inner"] == "4-6"


@pytest.mark.parametrize(
    ("container", "inner", "assigns", "want"),
    [
        ("0", "0", "", "0-1"),
        ("0-1", "0", "", "0"),
        ("0-1", "0-1", "", "0-1"),
        ("0-1", "0", "1", "1"),
    ],
)
def test_a_nested_cgroups_memory_goes_with_its_containers(
    container: str, inner: str, assigns: str, want: str
) -> None:
    every, path = CpuSet(range(8)), f"{POD}/{OWNER}"
    mems = {"kubepods": "0-1", POD: "0-1", path: container, f"{path}/inner": inner}
    sets = {each: (every, MemSet.parse(text)) for each, text in mems.items()}
    observed = tree_of(
        Version.V1, "kubepods", (Cgroup(each, *both, *both) for each, both in sets.items())
    )
    wanted = desire(spec(assigned("owner", "5", assigns)), observed, NAMING, NAMES, machine())
    nested = wanted[f"{path}/inner"]
    assert (str(nested.mems), nested.owner) == (want, "1/owner")


def test_memory_is_where_the_spec_says_else_anywhere() -> None:
    one = spec(assigned("owner", "5", "1"), assigned("guest", "", "0", exclusive=False))
    wanted = desire(one, tree(), NAMING, NAMES, machine())
    mems = {path.rpartition("/")[2]: str(want.mems) for path, want in wanted.items()}
    assert (mems[OWNER], mems["inner"], mems[GUEST]) == ("1", "1", "0")
    assert {mems[name] for name in ("kubepods", "burstable", "pod1", SANDBOX)} == {"0-1"}
    assert wanted[f"{POD}/{OWNER}"].owner == "1/owner"
    assert not wanted[f"{POD}/{GUEST}"].owner


@pytest.mark.parametrize(
    ("offline", "owner", "alone", "shared"),
    [
        ("5", "6", True, "0-3"),
        ("5-6", "0-3", False, "0-3"),
        ("0-3", "5-6", True, "4,7"),
        ("0-4,7", "5-6", False, "5-6"),
    ],
    ids=["part of an owner's", "all of an owner's", "the pool", "all but an owner's"],
)
def test_what_went_offline_is_left_out(offline: str, owner: str, alone: bool, shared: str) -> None:
    one = spec(assigned("owner", "5-6"))
    wanted = desire(one, tree(), NAMING, NAMES, machine(offline))
    mine = wanted[f"{POD}/{OWNER}"]
    assert (str(mine.cpus), mine.exclusive) == (owner, alone)
    assert str(wanted[f"{POD}/{GUEST}"].cpus) == shared


def test_an_owner_is_known_by_what_is_left_of_its_cpus() -> None:
    wanted = desire(spec(assigned("owner", "5-6")), tree(owner="6"), NAMING, {}, machine("5"))
    assert wanted[f"{POD}/{OWNER}"].owner == "1/owner"


def test_who_is_listed_and_owns_nothing_is_no_owner() -> None:
    one = spec(assigned("owner", "5-6", exclusive=False))
    wanted = desire(one, tree(), NAMING, NAMES, machine())[f"{POD}/{OWNER}"]
    assert (str(wanted.cpus), wanted.exclusive, wanted.owner) == ("5-6", False, "")
    assert cpus_of(one, tree(owner="5-6"), {})["owner"] == "0-3"


def test_memory_that_went_is_left_out() -> None:
    left = Topology(machine().cpus, (NumaNode(0, 2**30), NumaNode(1, 0)))
    one = spec(assigned("owner", "5", "1"), assigned("guest", "", "0-1", exclusive=False))
    wanted = desire(one, tree(), NAMING, NAMES, left)
    assert [str(wanted[f"{POD}/{each}"].mems) for each in (OWNER, GUEST)] == ["0", "0"]


def test_when_the_pool_is_offline_the_cpus_that_nobody_owns_take_its_place() -> None:
    one = spec(assigned("owner", "5-6"), assigned("guest", "4,7", exclusive=False))
    wanted = desire(one, tree(), NAMING, NAMES, machine("0-3"))
    assert str(wanted[f"{POD}/{SANDBOX}"].cpus) == "4,7"
    assert str(wanted[f"{POD}/{OWNER}"].cpus) == "5-6"


def test_kubepods_stays_as_found_while_it_holds_what_is_wanted() -> None:
    one = spec(assigned("owner", "5"))
    assert cpus_of(one, tree(kubepods="0-6"), NAMES)["kubepods"] == "0-6"
    assert cpus_of(one, tree(kubepods="0-4"), NAMES)["kubepods"] == "0-7"


def test_a_container_and_the_one_that_replaces_it_are_one_owner() -> None:
    observed = tree(owner="5-6")
    names = {OWNER: "owner", GUEST: "owner"}
    wanted = desire(spec(assigned("owner", "5-6")), observed, NAMING, names, machine())
    assert wanted[f"{POD}/{OWNER}"].owner == wanted[f"{POD}/{GUEST}"].owner == "1/owner"
