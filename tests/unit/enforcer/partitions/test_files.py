"""What the kernel means when it refuses a file of a partition."""

import errno
from pathlib import Path

import pytest

from numapin_enforcer.cgroups.errors import CgroupRefusedError, error_of
from numapin_enforcer.partitions import files
from numapin_enforcer.partitions.files import KernelPartitions
from numapin_enforcer.partitions.plan import File, PartitionWrite


@pytest.fixture
def mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three cgroups side by side; each write is refused as a conflict is."""
    for name, cpus in (("own", "4"), ("other", "2-3"), ("third", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / File.EXCLUSIVE).write_text(f"{cpus}\n")

    def refuse(path: str, text: str) -> None:
        raise error_of(path, text, OSError(errno.EINVAL, "Invalid argument"))

    monkeypatch.setattr(files, "write_file", refuse)
    return tmp_path


def test_the_cgroup_that_has_cpus_exclusively_is_named(mount: Path) -> None:
    with pytest.raises(CgroupRefusedError, match=f"{mount}/other has CPUs 3 exclusively") as found:
        KernelPartitions(mount).write(PartitionWrite("own", File.EXCLUSIVE, "3-4"))
    assert found.value.number == errno.EINVAL


@pytest.mark.parametrize(
    "write",
    [
        PartitionWrite("own", File.EXCLUSIVE, "4-5"),
        PartitionWrite("own", File.PARTITION, "root"),
    ],
    ids=["nobody has them", "another file"],
)
def test_else_the_kernels_own_reason_stays(mount: Path, write: PartitionWrite) -> None:
    with pytest.raises(CgroupRefusedError, match="EINVAL") as found:
        KernelPartitions(mount).write(write)
    assert "exclusively" not in str(found.value)
