"""A release is complete, and each of its files installs alone."""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
import yaml

from numapin_api import names
from numapin_lab.components.build import provide
from numapin_lab.components.catalog import HELM, KREW
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.errors import LabError
from numapin_lab.running_lab import NOT_SERVED_YET, eventually
from support.real.installing.helm import Helm
from support.real.installing.own_plane import own_plane
from support.real.installing.readme import RELEASED, first_pod
from support.suite.left_out import before_release

ROOT = Path(__file__).parents[3]
DOWNLOADS = "https://example.com/numapin/v0.1.0"
REGISTRY = "registry.example.com/team"

Krew = Callable[..., Path]


def build(output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(ROOT / "release" / "build.py"), "--allow-changes", "--no-images"]
    return subprocess.run(
        [*program, "--platform=linux-amd64", f"--output={output}", *options],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release") / "new"
    made = build(folder, f"--registry={REGISTRY}/", f"--downloads={DOWNLOADS}/")
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture(scope="module")
def cluster(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """An API server on which nothing was installed."""
    with own_plane(tmp_path_factory.mktemp("plane"), control_plane.programs) as plane:
        yield plane


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def test_the_checksums_are_those_of_all_other_files(release: Path) -> None:
    files = [one for one in release.iterdir() if one.name != "SHA256SUMS"]
    wanted = {f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}" for one in files}
    assert set((release / "SHA256SUMS").read_text().splitlines()) == wanted
    overlays = {one.name for one in (ROOT / "manifests" / "overlays").iterdir()}
    assert {one for one in overlays if list(release.glob(f"numapin-*-{one}.yaml"))} == overlays


@before_release
def test_the_same_sources_give_the_same_files(release: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    made = build(again, f"--registry={REGISTRY}", f"--downloads={DOWNLOADS}")
    assert made.returncode == 0, made.stderr
    assert (again / "SHA256SUMS").read_text() == (release / "SHA256SUMS").read_text()
    second = build(again, "--registry=registry.example.com/other", "--no-plugin")
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


@pytest.fixture
def krew(tmp_path: Path) -> Krew:
    """krew in folders of its own."""
    program, home = provide([KREW.name])[KREW.name].path, tmp_path / "krew"
    home.mkdir()

    def run(*arguments: str) -> Path:
        environment = os.environ | {"KREW_ROOT": str(home)}
        answer = subprocess.run(
            [program, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert answer.returncode == 0, answer.stderr
        return home / "bin"

    return run


def test_krew_installs_the_plug_in_of_kubectl(
    release: Path, krew: Krew, control_plane: ControlPlane, tmp_path: Path
) -> None:
    archive, manifest = only(release, "kubectl-numapin-*.tar.gz"), release / "krew.yaml"
    (platform,) = yaml.safe_load(manifest.read_text())["spec"]["platforms"]
    assert platform["uri"] == f"{DOWNLOADS}/{archive.name}"
    plugins = krew("install", f"--manifest={manifest}", f"--archive={archive}")

    path = {"PATH": f"{plugins}:{Path(sys.executable).parent}:/usr/bin:/bin"}
    machine = machine_file(tmp_path, Path(sys.executable).with_name("numapin"))
    examples = [f"--filename={ROOT / 'examples' / one}" for one in ("policy.yaml", "pods.yaml")]
    plan = subprocess.run(
        [control_plane.programs["kubectl"], "numapin", "plan", f"--machine={machine}", *examples],
        env=path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "default/trading" in plan.stdout


def test_the_plug_in_says_which_python_it_needs(release: Path, tmp_path: Path) -> None:
    with tarfile.open(only(release, "kubectl-numapin-*.tar.gz")) as archive:
        archive.extractall(tmp_path / "plugin", filter="data")
    without_python = tmp_path / "bin"
    without_python.mkdir()
    for name in ("sh", "readlink", "dirname"):
        program = shutil.which(name)
        assert program is not None
        (without_python / name).symlink_to(program)
    answer = subprocess.run(
        [tmp_path / "plugin" / "kubectl-numapin", "topology"],
        env={"PATH": str(without_python)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    assert answer.stderr.startswith("kubectl-numapin: install Python 3.11 to 3.14")
    assert answer.stdout == ""


def machine_file(folder: Path, numapin: Path) -> Path:
    """This machine, as `numapin topology` writes it."""
    file = folder / "machine.json"
    with file.open("w") as stream:
        subprocess.run([numapin, "topology", "--output=json"], stdout=stream, check=True)
    return file


def test_the_readmes_three_commands_are_accepted(release: Path, cluster: ControlPlane) -> None:
    """No node is here to run the pods."""
    commands = first_pod()
    assert len(commands) <= 3

    def accepted(command: Sequence[str]) -> bool:
        try:
            cluster.kubectl(*(word.replace(RELEASED, str(release)) for word in command))
        except LabError as error:
            if not any(why in str(error) for why in NOT_SERVED_YET):
                raise
            return False
        return True

    for command in commands:
        eventually(partial(accepted, command), True)
    assert "latency-critical" in cluster.kubectl("get", "cpupolicies", "-o", "name")
    assert "pod/trading" in cluster.kubectl("get", "pods", "-o", "name")
    cluster.kubectl("delete", "--force", "--wait=false", "-f", str(ROOT / "examples" / "pods.yaml"))


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
