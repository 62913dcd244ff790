"""A release is complete, and each of its files installs alone."""

import hashlib
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from numapin_api import names
from numapin_lab.components.build import provide
from numapin_lab.components.catalog import HELM
from numapin_lab.controlplane.servers import ControlPlane, ControlPlanePorts
from numapin_lab.errors import LabError
from numapin_lab.processes.ports import choose
from numapin_lab.running_lab import eventually
from support.real.helm import Helm

ROOT = Path(__file__).parents[3]
REGISTRY = "registry.example.com/team"


def build(output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(ROOT / "release" / "build.py"), "--allow-changes", "--no-images"]
    return subprocess.run(
        [*program, f"--output={output}", *options], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release") / "new"
    made = build(folder, f"--registry={REGISTRY}/")
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture(scope="module")
def cluster(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """An API server on which nothing was installed."""
    plane = ControlPlane(
        tmp_path_factory.mktemp("plane"), ControlPlanePorts(*choose(3)), control_plane.programs
    )
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def test_the_checksums_are_those_of_all_other_files(release: Path) -> None:
    files = [one for one in release.iterdir() if one.name != "SHA256SUMS"]
    wanted = {f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}" for one in files}
    assert set((release / "SHA256SUMS").read_text().splitlines()) == wanted
    overlays = {one.name for one in (ROOT / "manifests" / "overlays").iterdir()}
    assert {one for one in overlays if list(release.glob(f"numapin-*-{one}.yaml"))} == overlays


def test_the_same_sources_give_the_same_files(release: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    assert build(again, f"--registry={REGISTRY}").returncode == 0
    assert (again / "SHA256SUMS").read_text() == (release / "SHA256SUMS").read_text()
    second = build(again, "--registry=registry.example.com/other")
    assert second.returncode == 0, "a release is replaced by the next one"
    assert (again / "SHA256SUMS").read_text() != (release / "SHA256SUMS").read_text()


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    answer = build(tmp_path)
    assert answer.returncode == 1
    assert "has other files: name another folder with --output" in answer.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]


def test_the_wheel_has_the_commands(release: Path, tmp_path: Path) -> None:
    wheel = only(release, "*.whl")
    venv.create(tmp_path, with_pip=True)
    programs = tmp_path / "bin"
    subprocess.run(
        [programs / "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[cli]"],
        check=True,
        timeout=600,
    )
    examples = [f"--filename={ROOT / 'examples' / one}" for one in ("policy.yaml", "pods.yaml")]
    machine = f"--machine={machine_file(tmp_path, programs / 'numapin')}"
    plan = subprocess.run(
        [programs / "kubectl-numapin", "plan", machine, *examples],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert "default/trading" in plan.stdout


def machine_file(folder: Path, numapin: Path) -> Path:
    """This machine, as `numapin topology` writes it."""
    file = folder / "machine.json"
    with file.open("w") as stream:
        subprocess.run([numapin, "topology", "--output=json"], stdout=stream, check=True)
    return file


def test_the_manifests_and_then_the_chart_install(
    release: Path, cluster: ControlPlane, tmp_path: Path
) -> None:
    kubectl = cluster.kubectl
    image = ("-o", "jsonpath={.spec.template.spec.containers[0].image}")
    operator = ("get", "deploy", "numapin-operator", "-n", names.NAMESPACE, *image)

    def applied() -> bool:
        try:
            kubectl("apply", "--server-side", "-f", str(only(release, "*-default.yaml")))
        except LabError:
            return False
        return True

    eventually(applied, True)
    assert kubectl(*operator) == f"{REGISTRY}/numapin-operator:0.1.0"
    kubectl("apply", "--server-side", "-f", str(only(release, "*-crds.yaml")))
    helm = Helm(provide([HELM.name])[HELM.name].path, tmp_path, cluster.kubeconfig)
    chart = only(release, "numapin-0.1.0.tgz")
    settings = "--set=image.registry=registry.example.com/chart"
    helm("install", "numapin", str(chart), "--take-ownership", "--force-conflicts", settings)
    assert kubectl(*operator) == "registry.example.com/chart/numapin-operator:0.1.0"
