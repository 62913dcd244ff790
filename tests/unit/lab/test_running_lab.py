"""What a running lab reads of the kernel while cgroups come and go."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from numapin_api.cpuset import CpuSet
from numapin_lab.running_lab import RunningLab

list_folder = os.scandir


class Listed(list[os.DirEntry[str]]):
    """What os.scandir answers, read to the end before anybody sees any of it."""

    def __enter__(self) -> Iterator[os.DirEntry[str]]:
        return iter(self)

    def __exit__(self, *_: object) -> None:
        """Nothing is left open."""

    def __next__(self) -> os.DirEntry[str]:
        if not self:
            raise StopIteration
        return self.pop(0)


def test_a_cgroup_removed_while_the_tree_is_read_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("kubepods", "kubepods/going", "kubepods/staying"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cpuset.cpus").write_text("0-1\n")

    def scandir(folder: str | Path) -> Listed:
        with list_folder(folder) as entries:
            found = Listed(entries)
        going = Path(folder) / "going"
        if going.exists():
            shutil.move(going, tmp_path / "gone")
        return found

    cgroup = SimpleNamespace(name="lab", folders=lambda: [tmp_path])
    lab = RunningLab(SimpleNamespace(runtime=SimpleNamespace(cgroup=cgroup)))  # type: ignore[arg-type]
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", scandir)
        found = lab.cpusets()
    assert found == {".": CpuSet([0, 1]), "staying": CpuSet([0, 1])}
