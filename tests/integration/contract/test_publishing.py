"""What others install is pushed to a registry, and the workflows that do so are right."""

import json
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from numapin_daemon.version import VERSION
from numapin_lab.components.build import provide
from numapin_lab.components.catalog import ACTIONLINT, CRANE, HELM
from numapin_lab.processes.ports import choose, is_free
from numapin_lab.running_lab import eventually

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROGRAMS = ("operator", "enforcer")
OTHER = {"x86_64": "arm64", "aarch64": "amd64"}[platform.machine()]
OWN = {"amd64": "arm64", "arm64": "amd64"}[OTHER]


def test_actionlint_finds_nothing(tmp_path: Path) -> None:
    program = provide([ACTIONLINT.name])[ACTIONLINT.name].path
    answer = subprocess.run([program, *WORKFLOWS], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout) == (0, "")
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(WORKFLOWS[0].read_text().replace("runs-on:", "run-on:"))
    assert subprocess.run([program, wrong], capture_output=True, check=False).returncode == 1


@pytest.fixture(scope="module")
def crane() -> Path:
    return provide([CRANE.name])[CRANE.name].path


@pytest.fixture
def registry(crane: Path, tmp_path: Path) -> Iterator[str]:
    """A registry that keeps everything in memory."""
    (port,) = choose(1)
    where = f"127.0.0.1:{port}"
    with (tmp_path / "registry.log").open("w") as log:
        serving = subprocess.Popen(
            [crane, "registry", "serve", f"--address={where}"], stdout=log, stderr=log
        )
        try:
            eventually(lambda: is_free(port), False)
            yield f"{where}/team"
        finally:
            serving.terminate()
            serving.wait(30)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """The files of a release that are pushed: of images one file each, for two architectures."""
    helm = provide([HELM.name])[HELM.name].path
    folder = tmp_path / "release"
    subprocess.run(
        [helm, "package", ROOT / "charts" / "numapin", "--destination", folder],
        check=True,
        capture_output=True,
    )
    for architecture in (OWN, OTHER):
        for program in PROGRAMS:
            write_image(tmp_path / architecture, program, architecture)
    return folder


def write_image(folder: Path, program: str, architecture: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "file").write_text(program + architecture)
    (folder / "Containerfile").write_text("FROM scratch\nCOPY file /file\n")
    name = f"localhost/numapin-test-publishing-{program}:{architecture}"
    build = ("buildah", "bud", "--quiet", f"--arch={architecture}", f"--tag={name}", str(folder))
    subprocess.run(build, check=True, capture_output=True)
    base = folder / f"numapin-{program}-{VERSION}"
    archive = f"docker-archive:{base}.tar:localhost/numapin-{program}:{VERSION}"
    subprocess.run(["buildah", "push", "--quiet", name, archive], check=True, capture_output=True)
    subprocess.run(["buildah", "rmi", name], check=True, capture_output=True)
    Path(f"{base}.sbom.cdx.json").write_text("{}")


def publish(release: Path, registry: str, *options: str) -> subprocess.CompletedProcess[str]:
    program = (sys.executable, str(ROOT / "release" / "publish.py"), str(release), "--http")
    return subprocess.run(
        [*program, f"--registry={registry}", *options], capture_output=True, text=True, check=False
    )


def images(folder: Path, **architectures: str) -> list[str]:
    return [f"--images={one}={folder / has}" for one, has in architectures.items()]


def test_an_index_of_both_architectures_and_the_chart_are_pushed(
    release: Path, registry: str, crane: Path, tmp_path: Path
) -> None:
    sums = tmp_path / "pushed.sums"
    answer = publish(
        release, registry, *images(tmp_path, **{OWN: OWN, OTHER: OTHER}), f"--output={sums}"
    )
    assert answer.returncode == 0, answer.stderr
    names = answer.stdout.split()
    assert [one.partition("@")[0] for one in names] == [
        f"{registry}/numapin-operator",
        f"{registry}/numapin-enforcer",
        f"{registry}/charts/numapin",
    ]
    for name, line in zip(names, sums.read_text().splitlines(), strict=True):
        said = subprocess.run([crane, "manifest", name], capture_output=True, check=True)
        manifest = json.loads(said.stdout)
        assert line == f"{name.partition('@sha256:')[2]}  {name.partition('@')[0]}"
        if "charts" not in name:
            found = [one["platform"]["architecture"] for one in manifest["manifests"]]
            assert sorted(found) == sorted([OWN, OTHER])
    tags = subprocess.run(
        [crane, "ls", f"{registry}/numapin-operator"], capture_output=True, text=True, check=True
    )
    assert tags.stdout.split() == [VERSION]


def test_an_image_of_another_architecture_is_not_pushed(
    release: Path, registry: str, tmp_path: Path
) -> None:
    answer = publish(release, registry, *images(tmp_path, **{OTHER: OWN}))
    assert answer.returncode == 1
    assert f"is no image for {OTHER} (it is for {OWN}): build it on such a machine" in answer.stderr
    assert answer.stdout == ""


def test_nothing_is_pushed_where_something_is_missing(
    release: Path, registry: str, tmp_path: Path
) -> None:
    (tmp_path / OTHER / f"numapin-enforcer-{VERSION}.tar").unlink()
    answer = publish(release, registry, *images(tmp_path, **{OTHER: OTHER}))
    assert answer.returncode == 1
    assert "has 0 files numapin-enforcer-" in answer.stderr
    assert answer.stdout == ""


def test_without_cosign_nothing_is_pushed(
    release: Path, registry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    answer = publish(release, registry, "--sign")
    assert answer.returncode == 2
    assert "cosign is not installed; without --sign nothing is signed" in answer.stderr
