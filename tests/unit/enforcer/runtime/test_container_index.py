"""The index finds the same containers from tree to tree as a new one would."""

from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version, tree_of
from numapin_enforcer.runtime.container_index import ContainerIndex

NAMING = CgroupNaming(Driver.CGROUPFS)
ROOT = NAMING.root
PATHS = [
    f"{ROOT}/{place}"
    for place in (
        "besteffort",
        "pod1",
        "podx",
        *(f"{pod}/{each * 64}" for pod in ("pod1", "podx") for each in "ab"),
        f"pod1/{'a' * 64}/inside",
        f"besteffort/podx/{'a' * 64}",
        "besteffort/podx",
        "pod1/other",
    )
]
TREES = st.sets(st.sampled_from(PATHS)).map(
    lambda paths: tree_of(Version.V1, ROOT, map(cgroup, {ROOT, *paths}))
)


def cgroup(path: str) -> Cgroup:
    return Cgroup(path, CpuSet([0]), MemSet([0]), CpuSet([0]), MemSet([0]))


def index(*trees: Tree) -> ContainerIndex:
    made = ContainerIndex()
    for tree in trees:
        made.update(tree, NAMING)
    return made


def places(index: ContainerIndex) -> dict[str, tuple[str, str]]:
    return {id_: (row.path, row.pod_uid) for id_, row in index.found.items() if id_ == row.id_}


def test_containers_are_found_by_their_ids_and_pods() -> None:
    one, other = f"{ROOT}/pod1/{'a' * 64}", f"{ROOT}/pod1/{'b' * 64}"
    tree = tree_of(Version.V1, ROOT, map(cgroup, (ROOT, f"{ROOT}/pod1", one, other)))
    found = index(tree)
    assert places(found) == {"a" * 64: (one, "1"), "b" * 64: (other, "1")}
    assert found.of_pods(("1", "2")) == {"a" * 64, "b" * 64}


@given(TREES, TREES)
def test_an_index_that_follows_is_as_a_new_one(before: Tree, now: Tree) -> None:
    followed, new = index(before, now), index(now)
    assert followed.found.keys() == new.found.keys()
    assert places(followed).keys() == followed.found.keys()
    for id_, (path, uid) in places(followed).items():
        parsed = NAMING.parse(path)
        assert (path in now.cgroups, parsed.container_id, parsed.pod_uid) == (True, id_, uid)
    for uid in ("1", "x"):
        assert followed.of_pods((uid,)) == new.of_pods((uid,))


def test_what_is_remembered_of_a_container_lasts_as_long_as_it_has_a_cgroup() -> None:
    id_ = "a" * 64
    one, moved = f"{ROOT}/pod1/{id_}", f"{ROOT}/podx/{id_}"
    pods = (ROOT, f"{ROOT}/pod1", f"{ROOT}/podx")
    trees = [
        tree_of(Version.V1, ROOT, map(cgroup, (*pods, *each))) for each in ((one,), (moved,), ())
    ]
    made = index(trees[0])
    made.found[id_].is_own = made.found[id_].is_intruder = True
    made.update(trees[1], NAMING)
    row = made.found[id_]
    assert (row.path, row.pod_uid, row.is_own, row.is_intruder) == (moved, "x", True, True)
    made.update(trees[2], NAMING)
    made.update(trees[0], NAMING)
    row = made.found[id_]
    assert (row.path, row.is_own, row.is_intruder) == (one, False, False)


def test_the_kubelets_new_cgroups_replace_those_of_its_other_driver() -> None:
    id_, other = "a" * 64, CgroupNaming(Driver.SYSTEMD)
    before = tree_of(Version.V1, ROOT, map(cgroup, (ROOT, f"{ROOT}/pod1/{id_}", f"{ROOT}/pod1")))
    pod = f"{other.root}/kubepods-podx.slice"
    scope = f"{pod}/cri-containerd-{id_}.scope"
    now = tree_of(Version.V1, other.root, map(cgroup, (other.root, pod, scope)))
    made = index(before)
    made.found[id_].is_intruder = True
    made.update(now, other)
    assert places(made) == {id_: (scope, "x")}
    assert made.found[id_].is_intruder
    assert (made.of_pods(("1",)), made.of_pods(("x",))) == (set(), {id_})
