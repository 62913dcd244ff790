#!/usr/bin/env python3
"""Build what a release consists of, from the sources of one commit.

    .venv/bin/python release/build.py [--output DIR] [--registry REGISTRY]

    numapin-X.Y.Z-py3-none-any.whl, numapin-X.Y.Z.tar.gz   the programs, for pip
    kubectl-numapin-X.Y.Z-PLATFORM.tar.gz, krew.yaml       the plug-in of kubectl, for krew
    numapin-X.Y.Z.tgz                                      the Helm chart
    numapin-X.Y.Z-OVERLAY.yaml                             each overlay in one file, for kubectl
    numapin-X.Y.Z-crds.yaml                                the CustomResourceDefinitions alone
    numapin-operator-X.Y.Z.tar, numapin-enforcer-X.Y.Z.tar the images, each with its SBOM
    RELEASE_NOTES.md                                       what CHANGELOG.md says of this version
    SHA256SUMS                                             for `sha256sum --check`

The folder is complete or absent: it is built under another name first. The same commit gives the
same files, where the images have the same base.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import yaml
from kubectl_plugin import PLATFORMS, build_plugin, krew_manifest

from numapin_daemon.version import VERSION
from numapin_lab.components.build import provide
from numapin_lab.errors import LabError

ROOT: Final = Path(__file__).resolve().parents[1]
OVERLAYS: Final = ROOT / "manifests" / "overlays"
CHART: Final = ROOT / "charts" / "numapin"
IMAGES: Final = ("numapin-operator", "numapin-enforcer")
SUMS: Final = "SHA256SUMS"
REGISTRY: Final = re.compile(r"[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*/?")
"""As in the schema of the chart's values."""
USAGE = 2


class ReleaseError(Exception):
    """A release cannot be built; the message says why and what to do."""


def run(*command: str | Path, **environment: str) -> str:
    """Run a program in the project's folder; returns its standard output.

    Raises:
        ReleaseError: it is not installed, or it failed; the message has the end of its output.
    """
    try:
        answer = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        raise ReleaseError(f"{command[0]} is not installed") from error
    if answer.returncode != 0:
        output = (answer.stdout + answer.stderr).strip()[-2000:]
        raise ReleaseError(f"{' '.join(map(str, command))} failed:\n{output}")
    return answer.stdout


def check_sources(*, changed: bool) -> str:
    """The version of the sources.

    Args:
        changed: whether files may differ from the commit.

    Raises:
        ReleaseError: they differ, or not everything has the same version.
    """
    if not changed and (differs := run("git", "status", "--porcelain").strip()):
        raise ReleaseError(f"commit these files first, or give --allow-changes:\n{differs}")
    version = str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    found = {f"charts/numapin/Chart.yaml: {key}": chart[key] for key in ("version", "appVersion")}
    found["daemon/numapin_daemon/version.py"] = VERSION
    for file in sorted(OVERLAYS.glob("*/kustomization.yaml")):
        for image in yaml.safe_load(file.read_text()).get("images", ()):
            found[f"{file.relative_to(ROOT)}: {image['name']}"] = image["newTag"]
    if wrong := [f"{where} is {one}" for where, one in found.items() if str(one) != version]:
        raise ReleaseError(f"pyproject.toml has version {version}, but " + "; ".join(wrong))
    return version


def check_registry(registry: str) -> None:
    """Look whether images can have such a name, before anything is built.

    Raises:
        ReleaseError: the nodes would refuse it.
    """
    if registry and not REGISTRY.fullmatch(registry):
        raise ReleaseError(
            f"--registry {registry}: give a host and folders, such as registry.example.com/team"
        )


def check_tools(*, images: bool) -> None:
    """Look for what builds the images, before anything is built.

    Raises:
        ReleaseError: it is not installed.
    """
    if images and shutil.which("buildah") is None:
        raise ReleaseError(
            "buildah is not installed (Debian: apt-get install buildah); "
            "--no-images leaves the images out"
        )


def release_notes(changelog: str, version: str) -> str:
    """The section of a version; before it what is unreleased, which the sources contain too.

    Raises:
        ReleaseError: there is neither.
    """
    sections = re.split(r"^## (?=\[)", changelog, flags=re.MULTILINE)[1:]
    notes = ""
    for title in ("Unreleased", version):
        for section in sections:
            text = re.sub(r"^\[[^]]*\]: .*$", "", section, flags=re.MULTILINE).strip()
            if text.startswith(f"[{title}]") and "\n" in text:
                notes += f"## {text}\n\n"
    if not notes:
        raise ReleaseError(
            f"CHANGELOG.md has no section for {version}, and none for what is unreleased"
        )
    return f"{notes.rstrip()}\n"


def with_registry(manifests: str, registry: str, version: str) -> str:
    """Manifests whose images have the registry in their names."""
    for image in IMAGES:
        line = f"image: {image}:{version}\n"
        if line not in manifests:
            raise ReleaseError(f"the manifests use no image {image}:{version}")
        manifests = manifests.replace(line, f"image: {registry}{image}:{version}\n")
    return manifests


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """A folder to fill, which takes its name when it is complete.

    Raises:
        ReleaseError: there is one of that name which is no release.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / SUMS).exists():
        raise ReleaseError(f"{folder} has other files: name another folder with --output")
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    made.chmod(0o755)
    try:
        yield made
        if folder.exists():
            shutil.rmtree(folder)
        made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def package_chart(helm: Path, folder: Path, time: int) -> None:
    """Pack the Helm chart; its files get a time of their own, because Helm writes it down."""
    with tempfile.TemporaryDirectory() as parent:
        chart = shutil.copytree(CHART, Path(parent) / "numapin")
        for file in (chart, *chart.rglob("*")):
            os.utime(file, (time, time))
        run(helm, "package", chart, "--destination", folder)


def write_plugins(folder: Path, version: str, time: int, options: argparse.Namespace) -> None:
    """Write the plug-in of kubectl for each platform, and krew's manifest."""
    wanted = options.platform or PLATFORMS
    plugins = {one: build_plugin(folder, one, version, time, run) for one in wanted}
    (folder / "krew.yaml").write_text(krew_manifest(plugins, version, options.downloads))


def fill(folder: Path, version: str, options: argparse.Namespace) -> None:
    """Build every file."""
    say = Progress(4 + options.images + options.plugin)
    registry = f"{options.registry.rstrip('/')}/" if options.registry else ""
    say("wheel and sdist")
    time = run("git", "log", "-1", "--format=%ct").strip()
    run(sys.executable, "-m", "build", "--outdir", folder, SOURCE_DATE_EPOCH=time)
    if options.plugin:
        say("plug-in of kubectl")
        write_plugins(folder, version, int(time), options)
    programs = provide(["helm", "kubectl"], progress=lambda text: print(text, file=sys.stderr))
    say("chart")
    package_chart(programs["helm"].path, folder, int(time))
    say("manifests")
    for overlay in sorted(OVERLAYS.iterdir()):
        made = run(programs["kubectl"].path, "kustomize", overlay)
        file = folder / f"numapin-{version}-{overlay.name}.yaml"
        file.write_text(with_registry(made, registry, version))
    crds = sorted((CHART / "crd-files").glob("numapin.io_*.yaml"))
    made = "---\n".join(file.read_text() for file in crds)
    (folder / f"numapin-{version}-crds.yaml").write_text(made)
    if options.images:
        say("images (some minutes)")
        base = ["--base", options.base] if options.base else []
        run(ROOT / "images" / "build", *base, "--tag", version, "--output", folder)
    say("notes and checksums")
    notes = release_notes((ROOT / "CHANGELOG.md").read_text(), version)
    (folder / "RELEASE_NOTES.md").write_text(notes)
    sums = [f"{digest(file)}  {file.name}\n" for file in sorted(folder.iterdir())]
    (folder / SUMS).write_text("".join(sums))


class Progress:
    """Prints each step with its number."""

    def __init__(self, steps: int) -> None:
        """Nothing is done yet."""
        self._steps, self._done = steps, 0

    def __call__(self, what: str) -> None:
        """Begin the next step."""
        self._done += 1
        print(f"release: {self._done} of {self._steps}: {what}", file=sys.stderr, flush=True)


def digest(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, help="the folder (dist/numapin-X.Y.Z)")
    parser.add_argument(
        "--registry", default="", help="registry and folder of the images in the manifests"
    )
    parser.add_argument(
        "--downloads", default="", help="URL of the folder where these files will be, for krew.yaml"
    )
    parser.add_argument("--base", default="", help="the images' base; see images/build")
    parser.add_argument(
        "--no-images", dest="images", action="store_false", help="leave the images out"
    )
    parser.add_argument(
        "--no-plugin", dest="plugin", action="store_false", help="leave kubectl's plug-in out"
    )
    parser.add_argument(
        "--platform",
        action="append",
        choices=PLATFORMS,
        help="a platform of kubectl's plug-in; may be repeated (all)",
    )
    parser.add_argument(
        "--allow-changes", action="store_true", help="build although files are not committed"
    )
    return parser.parse_args()


def main() -> int:
    """Build a release; the exit status is 2 if that cannot begin and 1 if it fails."""
    options = arguments()
    try:
        version = check_sources(changed=options.allow_changes)
        check_registry(options.registry)
        check_tools(images=options.images)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return USAGE
    output = options.output or ROOT / "dist" / f"numapin-{version}"
    try:
        with appearing(output.resolve()) as folder:
            fill(folder, version, options)
    except (ReleaseError, LabError, OSError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    for file in sorted(output.iterdir()):
        print(f"{file.stat().st_size:>12,}  {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
