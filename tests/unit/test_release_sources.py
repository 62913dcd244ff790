"""A release is built only of sources that all have one version, and says what is in it."""

import hashlib
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
import yaml

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


RELEASED = """\
## [0.2.0] - 2026-01-01

### Added

- a

## [0.1.0]

First.

[0.2.0]: https://example.com/v0.2.0
"""


@pytest.mark.parametrize("unreleased", ["", "## [Unreleased]\n\n"])
def test_the_notes_are_the_section_of_the_version(build: ModuleType, unreleased: str) -> None:
    changelog = f"# Changelog\n\n{unreleased}{RELEASED}"
    assert (
        build.release_notes(changelog, "0.2.0") == "## [0.2.0] - 2026-01-01\n\n### Added\n\n- a\n"
    )
    assert build.release_notes(changelog, "0.1.0") == "## [0.1.0]\n\nFirst.\n"


def test_the_notes_tell_what_is_unreleased_too(build: ModuleType) -> None:
    """The files of a release contain it, whatever their version is."""
    changelog = f"# Changelog\n\n## [Unreleased]\n\n- b\n\n{RELEASED}"
    wanted = "## [Unreleased]\n\n- b\n"
    assert build.release_notes(changelog, "0.1.0") == f"{wanted}\n## [0.1.0]\n\nFirst.\n"
    assert build.release_notes(changelog, "9.9.9") == wanted


def test_without_any_notes_there_is_no_release(build: ModuleType) -> None:
    with pytest.raises(build.ReleaseError, match=r"no section for 9\.9\.9"):
        build.release_notes(RELEASED, "9.9.9")


@pytest.mark.parametrize("registry", ["", "localhost:5000", "registry.example.com/team/"])
def test_a_registry_is_a_host_with_folders(build: ModuleType, registry: str) -> None:
    build.check_registry(registry)


@pytest.mark.parametrize("registry", ["https://example.com", "example.com/team:1.0", "a b"])
def test_a_registry_that_no_image_can_name_is_refused(build: ModuleType, registry: str) -> None:
    with pytest.raises(build.ReleaseError, match="give a host and folders"):
        build.check_registry(registry)


def test_the_chart_refuses_the_same_registries(build: ModuleType) -> None:
    schema = json.loads((RELEASE.parent / "charts/numapin/values.schema.json").read_text())
    pattern = schema["properties"]["image"]["properties"]["registry"]["pattern"]
    assert pattern == f"^({build.REGISTRY.pattern})?$"


def test_a_program_that_is_missing_is_named(build: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(build.ReleaseError, match="/missing is not installed"):
        build.run(tmp_path / "missing")


def test_krew_finds_the_plug_in_of_each_platform(build: ModuleType, tmp_path: Path) -> None:
    archives = {one: tmp_path / f"kubectl-numapin-{one}.tar.gz" for one in build.PLATFORMS}
    for one, archive in archives.items():
        archive.write_text(one)
    manifest = yaml.safe_load(build.krew_manifest(archives, "0.1.0", "https://example.com/v0.1.0/"))
    found = {
        "{os}-{arch}".format(**one["selector"]["matchLabels"]): (one["uri"], one["sha256"])
        for one in manifest["spec"]["platforms"]
    }
    assert found.keys() == {"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"}
    for one, (uri, digest) in found.items():
        assert uri == f"https://example.com/v0.1.0/{archives[one].name}"
        assert digest == hashlib.sha256(one.encode()).hexdigest()
