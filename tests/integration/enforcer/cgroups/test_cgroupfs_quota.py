"""CFS quotas on this machine's kernel are removed and restored."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from numapin_enforcer.cfs_quota.lifted import LiftedQuotas
from numapin_enforcer.cgroups.cgroupfs import Cgroupfs
from numapin_enforcer.cgroups.errors import CgroupRefusedError
from numapin_enforcer.cgroups.mounts import Mounts, find_mounts
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.write import Quota, Step, Write

INNER = "pod1/container"


@pytest.fixture
def mounts() -> Mounts:
    return find_mounts(Path("/sys/fs/cgroup"))


@pytest.fixture
def root(mounts: Mounts) -> Iterator[str]:
    """A pod limited to 3 CPUs with a container limited to 2, in the cpu hierarchy."""
    assert mounts.cpu is not None, "this machine has no cpu controller"
    name = f"numapin-test-{secrets.token_hex(4)}"
    paths = [mounts.cpu / name, mounts.cpu / name / "pod1", mounts.cpu / name / INNER]
    for path in paths:
        if mounts.version is Version.V2:
            (path.parent / "cgroup.subtree_control").write_text("+cpu")
        path.mkdir()
    files = Cgroupfs(mounts, name)
    files.write(Write(f"{name}/pod1", Quota(300_000), Step.GRANT))
    files.write(Write(f"{name}/{INNER}", Quota(200_000), Step.GRANT))
    yield name
    for path in reversed(paths):
        path.rmdir()


def test_quotas_are_read_removed_and_restored(mounts: Mounts, root: str, tmp_path: Path) -> None:
    files = Cgroupfs(mounts, root)
    paths = (f"{root}/pod1", f"{root}/{INNER}")
    assert [files.read_quota(path) for path in paths] == [Quota(300_000), Quota(200_000)]
    quotas = LiftedQuotas(files, root, tmp_path)
    assert quotas.update(paths).complete
    assert [files.read_quota(path) for path in paths] == [Quota(None), Quota(None)]
    assert quotas.update(()).complete
    assert [files.read_quota(path) for path in paths] == [Quota(300_000), Quota(200_000)]


def test_a_quota_that_the_kernel_refuses_is_named(mounts: Mounts, root: str) -> None:
    with pytest.raises(CgroupRefusedError, match="EINVAL"):
        Cgroupfs(mounts, root).write(Write(f"{root}/pod1", Quota(1), Step.GRANT))
