"""What the lab needs of the machine."""

import re
from pathlib import Path

import pytest

from numapin_lab import requirements
from numapin_lab.errors import LabError, MissingError


def test_a_user_without_root_gets_the_command_with_sudo() -> None:
    with pytest.raises(MissingError, match=r"needs root(.|\n)*sudo .* python -m numapin_lab up"):
        requirements.check_root("python -m numapin_lab up", user=1000)


def test_everything_missing_is_reported_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def missing(*_: object) -> None:
        raise MissingError("containerd needs runc", "apt-get install runc")

    monkeypatch.setattr(requirements, "find_runc", missing)
    monkeypatch.setattr(requirements, "MOUNTS", tmp_path / "mounts")
    (tmp_path / "mounts").write_text("")
    environment = {"PATH": str(tmp_path), "NUMAPIN_LAB_CACHE": str(tmp_path)}
    with pytest.raises(LabError) as refused:
        requirements.check("up", environment)
    for needed in (
        "no cgroup hierarchy has the cpuset controller",
        "containerd needs runc\n  fix it with: apt-get install runc",
        "must be built, and there is no Go",
    ):
        assert re.search(re.escape(needed), str(refused.value))
