import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_enforcer.cgroups import Cgroup, Tree, Version, tree_of
from numapin_enforcer.desired import Desired, contain, desire, owned_cpus, release
from numapin_enforcer.layout import Driver, Layout

LAYOUT = Layout(Driver.CGROUPFS)
OWNER, GUEST, SANDBOX = (letter * 64 for letter in "abf")
POD = "kubepods/pod1"
NAMES = {OWNER: "owner", GUEST: "guest"}


def machine(offline: str = "") -> Topology:
    gone = CpuSet.parse(offline)
    cpus = tuple(Cpu(cpu, cpu, 0, 0, cpu // 4) for cpu in CpuSet(range(8)) - gone)
    return Topology(cpus, (NumaNode(0, 2**30), NumaNode(1, 2**30)), gone)


def assigned(
    name: str, cpus: str, mems: str = "", *, exclusive: bool = True
) -> ContainerAssignment:
    return ContainerAssignment(
        pod_uid="1",
        namespace="d",
        pod="p",
        container=name,
        cpus=CpuSet.parse(cpus),
        mems=MemSet.parse(mems),
        exclusive=exclusive,
    )


def spec(*containers: ContainerAssignment, shared: str = "0-3") -> NodeAssignmentSpec:
    pools = Pools(reserved=CpuSet.parse("0"), shared=CpuSet.parse(shared))
    return NodeAssignmentSpec(pools=pools, containers=containers)


def tree(**found: str) -> Tree:
    """kubepods with both classes, and a pod with an owner, a guest, its sandbox: all on 0-7."""
    paths = {
        "kubepods": "0-7",
        "kubepods/burstable": "0-7",
        "kubepods/besteffort": "0-7",
        POD: "0-7",
        f"{POD}/{OWNER}": found.get("owner", "0-7"),
        f"{POD}/{GUEST}": found.get("guest", "0-7"),
        f"{POD}/{SANDBOX}": found.get("sandbox", "0-7"),
        f"{POD}/{OWNER}/inner": found.get("inner", found.get("owner", "0-7")),
    }
    paths["kubepods"] = found.get("kubepods", "0-7")
    both = MemSet([0, 1])
    return tree_of(
        Version.V1,
        "kubepods",
        (
            Cgroup(path, CpuSet.parse(cpus), both, CpuSet.parse(cpus), both)
            for path, cpus in paths.items()
        ),
    )


def cpus_of(one: NodeAssignmentSpec, observed: Tree, names: dict[str, str]) -> dict[str, str]:
    wanted = desire(one, observed, LAYOUT, names, machine())
    short = {OWNER: "owner", GUEST: "guest", SANDBOX: "sandbox"}
    return {
        short.get(path.rpartition("/")[2], path.rpartition("/")[2]): str(want.cpus)
        for path, want in wanted.items()
    }


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


def test_a_newborn_is_nobody_until_it_has_its_name() -> None:
    one, names = spec(assigned("owner", "5-6")), {GUEST: "guest", SANDBOX: ""}
    for found in ("0-7", "5-6"):
        wanted = desire(one, tree(owner=found), LAYOUT, names, machine())[f"{POD}/{OWNER}"]
        assert (str(wanted.cpus), wanted.container, wanted.owner) == ("5-6", None, "")


def test_a_nested_cgroup_goes_with_its_container_but_keeps_a_choice_of_its_own() -> None:
    owner = spec(assigned("owner", "4-6"))
    assert cpus_of(owner, tree(owner="4-7", inner="4-7"), NAMES)["inner"] == "4-6"
    assert cpus_of(owner, tree(owner="4-7", inner="6-7"), NAMES)["inner"] == "6"
    assert cpus_of(owner, tree(owner="4-7", inner="7"), NAMES)["inner"] == "4-6"


def test_memory_is_where_the_spec_says_else_anywhere() -> None:
    one = spec(assigned("owner", "5", "1"), assigned("guest", "", "0", exclusive=False))
    wanted = desire(one, tree(), LAYOUT, NAMES, machine())
    mems = {path.rpartition("/")[2]: str(want.mems) for path, want in wanted.items()}
    assert (mems[OWNER], mems["inner"], mems[GUEST]) == ("1", "1", "0")
    assert {mems[name] for name in ("kubepods", "burstable", "pod1", SANDBOX)} == {"0-1"}
    assert wanted[f"{POD}/{OWNER}"].owner == "1/owner"
    assert not wanted[f"{POD}/{GUEST}"].owner


@pytest.mark.parametrize(
    ("offline", "owner", "shared"),
    [("5", "6", "0-3"), ("5-6", "0-3", "0-3"), ("0-3", "5-6", "4,7"), ("0-4,7", "5-6", "5-6")],
    ids=["part of an owner's", "all of an owner's", "the pool", "all but an owner's"],
)
def test_what_went_offline_is_left_out(offline: str, owner: str, shared: str) -> None:
    one = spec(assigned("owner", "5-6"))
    wanted = desire(one, tree(), LAYOUT, NAMES, machine(offline))
    assert str(wanted[f"{POD}/{OWNER}"].cpus) == owner
    assert str(wanted[f"{POD}/{GUEST}"].cpus) == shared


def test_when_the_pool_is_offline_the_cpus_that_nobody_owns_take_its_place() -> None:
    one = spec(assigned("owner", "5-6"), assigned("guest", "4,7", exclusive=False))
    wanted = desire(one, tree(), LAYOUT, NAMES, machine("0-3"))
    assert str(wanted[f"{POD}/{SANDBOX}"].cpus) == "4,7"
    assert str(wanted[f"{POD}/{OWNER}"].cpus) == "5-6"


def test_kubepods_stays_as_found_while_it_holds_what_is_wanted() -> None:
    one = spec(assigned("owner", "5"))
    assert cpus_of(one, tree(kubepods="0-6"), NAMES)["kubepods"] == "0-6"
    assert cpus_of(one, tree(kubepods="0-4"), NAMES)["kubepods"] == "0-7"


def test_a_container_and_the_one_that_replaces_it_are_one_owner() -> None:
    observed = tree(owner="5-6")
    names = {OWNER: "owner", GUEST: "owner"}
    wanted = desire(spec(assigned("owner", "5-6")), observed, LAYOUT, names, machine())
    assert wanted[f"{POD}/{OWNER}"].owner == wanted[f"{POD}/{GUEST}"].owner == "1/owner"


def test_released_everybody_has_what_kubepods_has() -> None:
    observed = tree(kubepods="0-6", owner="5")
    wanted = release(observed, machine())
    assert list(wanted) == list(observed.cgroups)
    assert {str(want.cpus) for want in wanted.values()} == {"0-6"}
    assert {str(want.mems) for want in wanted.values()} == {"0-1"}


def chain(cpus: str = "0-7", mems: str = "0-1") -> Tree:
    """kubepods and three cgroups, each in the one before."""
    sets = CpuSet.parse(cpus), MemSet.parse(mems)
    paths = ("kubepods", "kubepods/a", "kubepods/a/b", "kubepods/a/b/c")
    return tree_of(Version.V2, "kubepods", (Cgroup(path, *sets, *sets) for path in paths))


def test_whoever_is_around_a_cgroup_holds_all_that_it_is_to_have() -> None:
    one, node = assigned("owner", "3"), MemSet([0])
    wanted = {
        "kubepods/a": Desired(CpuSet([0]), node),
        "kubepods/a/b": Desired(CpuSet([0, 1]), node, one, exclusive=True),
        "kubepods/a/b/c": Desired(CpuSet([3]), MemSet([1])),
    }
    held = contain(chain(), wanted, machine())
    found = {path: (str(want.cpus), str(want.mems)) for path, want in held.items()}
    assert found == {
        "kubepods": ("0-7", "0-1"),
        "kubepods/a": ("0-1,3", "0-1"),
        "kubepods/a/b": ("0-1,3", "0-1"),
        "kubepods/a/b/c": ("3", "1"),
    }
    assert held["kubepods/a/b"].owner == "1/owner"
    assert held["kubepods/a/b/c"] is wanted["kubepods/a/b/c"]


@pytest.mark.parametrize(
    ("cpus", "mems", "offline", "root"),
    [
        ("0-5", "0-1", "", ("0-5", "0-1")),
        ("0-5", "0-1", "5", ("0-4", "0-1")),
        ("0-5", "0", "", ("0-7", "0-1")),
        ("", "0-1", "", ("0-7", "0-1")),
        ("7", "0-1", "7", ("0-6", "0-1")),
        ("2-5", "0-1", "", ("0-7", "0-1")),
        ("1-5", "0-1", "", ("1-5", "0-1")),
        ("0-5", "0-2", "", ("0-5", "0-1")),
    ],
    ids=[
        "as found",
        "less what is offline",
        "no memory",
        "newborn",
        "all offline",
        "too narrow",
        "wide enough without the first CPU",
        "less a NUMA node without memory",
    ],
)
def test_kubepods_is_as_found_or_has_everything(
    cpus: str, mems: str, offline: str, root: tuple[str, str]
) -> None:
    found = chain(cpus, mems)
    below = dict.fromkeys(found.parents, Desired(CpuSet([1]), MemSet([0])))
    if cpus in {"", "7"}:
        found, below = tree_of(Version.V2, "kubepods", [found.cgroups["kubepods"]]), {}
    held = contain(found, below, machine(offline))["kubepods"]
    assert (str(held.cpus), str(held.mems)) == root


def test_owned_are_the_cpus_of_owners_alone() -> None:
    owner, guest = assigned("owner", "5"), assigned("guest", "6", exclusive=False)
    wanted = [
        Desired(CpuSet([5]), MemSet([0]), owner, exclusive=True),
        Desired(CpuSet([6]), MemSet([0]), guest),
        Desired(CpuSet([0]), MemSet([0])),
    ]
    assert owned_cpus(wanted) == CpuSet([5])
    assert owned_cpus([]) == CpuSet()
