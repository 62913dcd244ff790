"""Cgroups that pods make inside their containers are read up to a limit, and never block others."""

import errno
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups import cgroupfs, file_access
from numapin_enforcer.cgroups.apply import apply
from numapin_enforcer.cgroups.cgroupfs import READS_BETWEEN, Cgroupfs
from numapin_enforcer.cgroups.errors import (
    CgroupError,
    CgroupReadOnlyError,
    CgroupRefusedError,
    error_of,
)
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.nested import nesting
from numapin_enforcer.cgroups.nested.nesting import MOST_DEPTH, MOST_NESTED
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.tree_cache import TreeCache
from numapin_enforcer.cgroups.watch.inotify import CgroupWatch
from numapin_enforcer.cgroups.write import Step, Write

NAMING = CgroupNaming(Driver.CGROUPFS)
POD = "kubepods/burstable/pod1"
CONTAINER = f"{POD}/{'a' * 64}"
OTHER = "kubepods/burstable/pod2"
NAMES = ("cpuset.cpus", "cpuset.mems", "cpuset.effective_cpus", "cpuset.effective_mems")


def put(mount: Path, path: str, cpus: str = "0-3") -> None:
    (mount / path).mkdir(parents=True, exist_ok=True)
    for name, text in zip(NAMES, (cpus, "0", cpus, "0"), strict=True):
        (mount / path / name).write_text(f"{text}\n")


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    for path in ("kubepods", "kubepods/burstable", POD, CONTAINER, OTHER):
        put(tmp_path, path)
    return tmp_path


@pytest.fixture
def files(mount: Path) -> Cgroupfs:
    return Cgroupfs(Mounts(Version.V1, mount, None), "kubepods", NAMING)


def fill(mount: Path, count: int) -> None:
    for number in range(count):
        put(mount, f"{CONTAINER}/n{number}")


def test_cgroups_inside_containers_are_read_up_to_a_number(mount: Path, files: Cgroupfs) -> None:
    fill(mount, MOST_NESTED)
    tree = files.read()
    assert (len(tree.cgroups), tree.unread) == (5 + MOST_NESTED, ())
    put(mount, f"{CONTAINER}/one-more")
    put(mount, f"{CONTAINER}/n0/below")
    put(mount, f"{POD}/{'b' * 64}")
    put(mount, f"{OTHER}/{'c' * 64}/nested")
    tree = files.read()
    (unread,) = tree.unread
    assert (unread.pod_uid, unread.path.startswith(f"{CONTAINER}/")) == ("1", True)
    assert unread.why == f"more than {MOST_NESTED} cgroups inside the containers of one pod"
    assert f"{POD}/{'b' * 64}" in tree.cgroups
    assert sum(path.startswith(f"{CONTAINER}/") for path in tree.cgroups) == MOST_NESTED


def test_cgroups_are_read_up_to_a_depth(mount: Path, files: Cgroupfs) -> None:
    path = CONTAINER
    for _ in range(MOST_DEPTH):
        path += "/d"
        put(mount, path)
    tree = files.read()
    assert max(one.count("/") for one in tree.cgroups) == MOST_DEPTH
    assert [one.why for one in tree.unread] == [f"more than {MOST_DEPTH} levels deep"]


def test_events_beyond_the_limits_are_not_reported(mount: Path) -> None:
    with CgroupWatch(mount, "kubepods", NAMING) as watch:
        for number in range(MOST_NESTED + 10):
            (mount / CONTAINER / f"n{number}").mkdir()
        (mount / POD / ("b" * 64)).mkdir()
        appeared = watch.read().appeared
        assert len(appeared) == MOST_NESTED + 1
        assert f"{POD}/{'b' * 64}" in appeared
        for number in range(MOST_NESTED, MOST_NESTED + 10):
            (mount / CONTAINER / f"n{number}").rmdir()
        assert watch.read().vanished == ()
        (mount / CONTAINER / "n0").rmdir()
        watch.read()
        (mount / CONTAINER / "again").mkdir()
        assert watch.read().appeared == (f"{CONTAINER}/again",)


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENAMETOOLONG, errno.EIO])
def test_what_cannot_be_read_has_what_its_parent_has(
    mount: Path, files: Cgroupfs, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    put(mount, f"{CONTAINER}/x", "3")
    real = file_access.read_files

    def refuse(folder: str, names: Sequence[str]) -> tuple[list[bytes], bool]:
        if folder.endswith("/x"):
            raise error_of(f"{folder}/{names[0]}", None, OSError(number, "refused"))
        return real(folder, names)

    monkeypatch.setattr(cgroupfs, "read_files", refuse)
    tree = files.read()
    assert tree.cgroups[f"{CONTAINER}/x"].effective_cpus == CpuSet(range(4))
    assert [(one.path, one.pod_uid) for one in tree.unread] == [(f"{CONTAINER}/x", "1")]
    with CgroupWatch(mount, "kubepods", NAMING) as watch:
        snapshot = TreeCache(files, watch)
        assert snapshot.observe(full_resync=True) == tree
        (mount / CONTAINER / "x" / "cpuset.cpus").write_text("1\n")
        assert snapshot.observe(full_resync=False) == tree


def test_an_unreadable_root_is_an_error(files: Cgroupfs, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: str, names: Sequence[str]) -> tuple[list[bytes], bool]:
        raise error_of(f"{folder}/{names[0]}", None, OSError(errno.EACCES, "refused"))

    monkeypatch.setattr(cgroupfs, "read_files", refuse)
    with pytest.raises(CgroupError, match="CAP_DAC_OVERRIDE is missing"):
        files.read()


@pytest.mark.parametrize(
    ("number", "kind", "made"),
    [
        (errno.EACCES, CgroupRefusedError, 1),
        (errno.EPERM, CgroupRefusedError, 1),
        (errno.EROFS, CgroupReadOnlyError, 0),
    ],
)
def test_only_a_read_only_mount_stops_the_writes_to_other_cgroups(
    number: int, kind: type[CgroupError], made: int
) -> None:
    class Files:
        def write(self, write: Write) -> None:
            if write.path == CONTAINER:
                raise error_of(write.path, str(write.value), OSError(number, "refused"))

    narrow = CpuSet([0])
    writes = [Write(path, narrow, Step.NARROW, leaves=CpuSet([3])) for path in (CONTAINER, OTHER)]
    outcome = apply(writes, Files())  # type: ignore[arg-type]
    assert [type(one.error) for one in outcome.failed] == [kind]
    assert len(outcome.made) == made


def test_at_the_limit_of_the_node_no_pod_has_fewer_than_another(
    mount: Path, files: Cgroupfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A modest pod has all of its cgroups read, however many the others have."""
    monkeypatch.setattr(nesting, "MOST_NESTED_ON_NODE", 50)
    modest = f"{OTHER}/{'c' * 64}"
    for path in (modest, f"{modest}/init", f"{modest}/init/below"):
        put(mount, path)
    for greedy in "de":
        for number in range(100):
            put(mount, f"kubepods/burstable/pod{greedy}/{greedy * 64}/n{number}")
        for parent in ("", f"/{greedy * 64}"):
            put(mount, f"kubepods/burstable/pod{greedy}{parent}")
    tree = files.read()
    nested = Counter(NAMING.parse(path).pod_uid for path in tree.cgroups if path.count("/") > 3)
    assert nested == {"2": 2, "d": 24, "e": 24}
    assert sorted(one.pod_uid for one in tree.unread) == ["d", "e"]
    assert "of this node" in tree.unread[0].why
    with CgroupWatch(mount, "kubepods", NAMING) as watch:
        watch.cover(tree.cgroups)
        assert not watch.problem
        (mount / f"{modest}/init/below/one").mkdir()
        (mount / next(path for path in tree.cgroups if "/n" in path) / "x").mkdir()
        assert watch.read().appeared == ()  # the node has as many as it may
        (mount / modest / "init" / "below" / "cpuset.cpus").write_text("1\n")
        assert watch.read().written == (f"{modest}/init/below",)


def test_a_long_read_leaves_time_for_something_else(mount: Path, files: Cgroupfs) -> None:
    fill(mount, 100)
    calls: list[int] = []
    files.between_reads = lambda: calls.append(len(calls))
    files.read()
    assert len(calls) == 105 // READS_BETWEEN
