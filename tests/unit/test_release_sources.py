"""A release is built only of sources that all have one version."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from numapin_daemon.version import VERSION

RELEASE = Path(__file__).parents[2] / "release"


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """`release/build.py`; a package of that name is installed, too."""
    monkeypatch.syspath_prepend(str(RELEASE))
    spec = importlib.util.spec_from_file_location("release_build", RELEASE / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_sources_have_one_version(build: ModuleType) -> None:
    assert build.check_sources(changed=True) == VERSION


def test_another_version_in_the_programs_is_refused(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "VERSION", "9.9.9")
    with pytest.raises(build.ReleaseError, match=r"daemon/numapin_daemon/version\.py is 9\.9\.9"):
        build.check_sources(changed=True)
