"""The folder of a release."""

import hashlib
from pathlib import Path

import pytest

from numapin_lab.errors import LabError
from numapin_lab.installed.release import SUMS, Release

FILES = (
    *("numapin-1.2.0-default.yaml", "numapin-1.2.0-k3s.yaml", "numapin-1.2.0.tgz"),
    *("numapin-operator-1.2.0.tar", "numapin-enforcer-1.2.0.tar"),
)


@pytest.fixture
def release(tmp_path: Path) -> Release:
    for name in FILES:
        (tmp_path / name).write_text(name)
    sums = [f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in FILES]
    (tmp_path / SUMS).write_text("".join(sums))
    return Release(tmp_path)


def test_what_is_in_it(release: Release) -> None:
    release.check()
    assert release.version == "1.2.0"
    assert release.chart.name == "numapin-1.2.0.tgz"
    assert release.images["operator"].name == "localhost/numapin-operator:1.2.0"


def test_a_file_that_was_changed_is_named(release: Release) -> None:
    release.chart.write_text("other")
    with pytest.raises(LabError, match=r"numapin-1\.2\.0\.tgz: FAILED"):
        release.check()


def test_a_folder_that_is_no_release_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"0 files numapin-.*-default.yaml: is it a release"):
        _ = Release(tmp_path).version
