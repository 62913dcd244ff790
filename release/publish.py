#!/usr/bin/env python3
"""Push a release to a registry, and sign what was pushed.

    .venv/bin/python release/publish.py RELEASE --registry REGISTRY
        [--images ARCHITECTURE=FOLDER]... [--sign] [--key FILE] [--output FILE]

RELEASE is the folder that release/build.py has made, each FOLDER one that images/build has filled
on a machine of that architecture (amd64, arm64). Of each image an index of all architectures is
pushed, and the chart beside them in `charts`. What was pushed is written to standard output, a line
each: `REGISTRY/NAME@sha256:...`.

--sign has cosign sign each of these and SHA256SUMS, and attest to each image its SBOM. Without
--key that is keyless: by the identity that the machine gives, such as that of a workflow. With
--key nothing is written to a public log: for a registry of one's own. Log in before, with `buildah
login`, docker or what else writes a file of credentials that buildah, Helm and cosign read.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from build import IMAGES, ROOT, SUMS, USAGE, ReleaseError, check_registry, check_tools, run

from numapin_lab.components.build import provide
from numapin_lab.errors import LabError

DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
ARCHITECTURES: Final = ("amd64", "arm64")


@dataclass(frozen=True)
class Destination:
    """Where things are pushed, and how they are signed there."""

    registry: str
    http: bool
    """Whether it speaks no TLS."""

    sign: bool
    key: Path | None
    """A key of cosign; None: keyless."""

    def push_index(self, image: str, version: str, archives: Mapping[str, Path]) -> str:
        """Push an image with all its architectures; returns its name with its digest.

        Raises:
            ReleaseError: an archive is of another architecture, or it cannot be pushed.
        """
        name = f"{self.registry}/{image}"
        made = f"localhost/{image}-index:{version}"
        run("buildah", "manifest", "create", made)
        try:
            for architecture, archive in archives.items():
                run("buildah", "manifest", "add", made, f"docker-archive:{archive}")
                check_architecture(made, architecture, archive)
            with tempfile.NamedTemporaryFile() as digest:
                where = (f"--tls-verify={not self.http}".lower(), f"--digestfile={digest.name}")
                run(
                    "buildah",
                    "manifest",
                    "push",
                    "--all",
                    *where,
                    made,
                    f"docker://{name}:{version}",
                )
                return f"{name}@{Path(digest.name).read_text().strip()}"
        finally:
            run("buildah", "manifest", "rm", made)

    def push_chart(self, chart: Path) -> str:
        """Push the chart's archive; returns its name with its digest."""
        helm = provide(["helm"])["helm"].path
        plain = ("--plain-http",) if self.http else ()
        said = _merged(helm, "push", str(chart), f"oci://{self.registry}/charts", *plain)
        found = DIGEST.search(said)
        if found is None:
            raise ReleaseError(f"helm push did not say what it has pushed:\n{said}")
        return f"{self.registry}/charts/numapin@{found[0]}"

    def sign_one(self, name: str) -> None:
        """Sign what has this name and digest, and what it refers to."""
        run("cosign", "sign", "--yes", "--recursive", *self._how(), name)

    def attest(self, index: str, architecture: str, sbom: Path) -> None:
        """Attest the SBOM of the image that an index has for an architecture."""
        name = index.partition("@")[0]
        about = f"{name}@{_platforms(self._inspect(index))[architecture]}"
        what = ("--type", "cyclonedx", "--predicate", str(sbom))
        run("cosign", "attest", "--yes", *what, *self._how(), about)

    def _inspect(self, index: str) -> str:
        """An index as the registry has it: what is pushed is compressed, and has other digests."""
        if not self.http:
            return run("buildah", "manifest", "inspect", index)
        host = self.registry.partition("/")[0]
        with tempfile.NamedTemporaryFile("w") as settings:
            settings.write(f'[[registry]]\nlocation = "{host}"\ninsecure = true\n')
            settings.flush()
            conf = f"--registries-conf={settings.name}"
            return run("buildah", conf, "manifest", "inspect", index)

    def sign_file(self, file: Path) -> None:
        """Write the signature of a file beside it."""
        bundle = f"--bundle={file}.sigstore.json"
        run("cosign", "sign-blob", "--yes", bundle, *self._key(), str(file))

    def _how(self) -> tuple[str, ...]:
        return (*(("--allow-http-registry",) if self.http else ()), *self._key())

    def _key(self) -> tuple[str, ...]:
        if self.key is None:
            return ()
        return (f"--key={self.key}", "--use-signing-config=false", "--tlog-upload=false")


def check_cosign(*, wanted: bool) -> None:
    """Look for what signs, before anything is pushed.

    Raises:
        ReleaseError: it is not installed.
    """
    if wanted and shutil.which("cosign") is None:
        raise ReleaseError("cosign is not installed; without --sign nothing is signed")


def check_architecture(index: str, architecture: str, archive: Path) -> None:
    """Compare what was last added to an index with what it should be.

    Raises:
        ReleaseError: it is of another architecture.
    """
    found = _platforms(run("buildah", "manifest", "inspect", index))
    if architecture not in found:
        there = ", ".join(found)
        raise ReleaseError(
            f"{archive} is no image for {architecture} (it is for {there}): "
            "build it on such a machine"
        )


def _platforms(index: str) -> dict[str, str]:
    """The digest of each architecture of an index."""
    entries = json.loads(index)["manifests"]
    return {one["platform"]["architecture"]: str(one["digest"]) for one in entries}


def _merged(*command: str | Path) -> str:
    """Standard output and error of a program that succeeds.

    Raises:
        ReleaseError: it failed.
    """
    answer = subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    said = answer.stdout + answer.stderr
    if answer.returncode != 0:
        raise ReleaseError(f"{' '.join(map(str, command))} failed:\n{said.strip()[-2000:]}")
    return said


def find_archives(folders: Mapping[str, Path], image: str, ending: str) -> dict[str, Path]:
    """The file of an image in the folder of each architecture.

    Raises:
        ReleaseError: one has none, or several.
    """
    found = {}
    for architecture, folder in folders.items():
        files = sorted(folder.glob(f"{image}-*{ending}"))
        if len(files) != 1:
            raise ReleaseError(f"{folder} has {len(files)} files {image}-*{ending}: one is needed")
        found[architecture] = files[0]
    return found


def publish(release: Path, folders: Mapping[str, Path], to: Destination) -> Iterator[str]:
    """Push and sign everything; yields the name of each with its digest.

    Raises:
        ReleaseError: something is missing, refused or of another architecture.
    """
    version = str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])
    chart = release / f"numapin-{version}.tgz"
    if not chart.is_file():
        raise ReleaseError(f"{release} has no {chart.name}: name the folder that make release made")
    wanted = [(image, find_archives(folders, image, f"{version}.tar")) for image in IMAGES]
    sboms = {image: find_archives(folders, image, f"{version}.sbom.cdx.json") for image in IMAGES}
    for image, archives in wanted if folders else ():
        index = to.push_index(image, version, archives)
        yield index
        if to.sign:
            to.sign_one(index)
            for architecture, sbom in sboms[image].items():
                to.attest(index, architecture, sbom)
    pushed = to.push_chart(chart)
    yield pushed
    if to.sign:
        to.sign_one(pushed)
        to.sign_file(release / SUMS)


def checksum_line(name: str) -> str:
    """What was pushed, as `sha256sum` writes a file."""
    where, _, digest = name.partition("@sha256:")
    return f"{digest}  {where}\n"


def built(text: str) -> tuple[str, Path]:
    """An architecture and the folder with its images, of an argument.

    Raises:
        argparse.ArgumentTypeError: it names none of these.
    """
    architecture, _, folder = text.partition("=")
    if architecture not in ARCHITECTURES or not Path(folder).is_dir() or not folder:
        known = " or ".join(ARCHITECTURES)
        raise argparse.ArgumentTypeError(f"{text}: give {known}, =, and a folder with its images")
    return architecture, Path(folder).resolve()


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("release", type=Path, help="the folder that release/build.py has made")
    parser.add_argument("--registry", required=True, help="host and folder to push to")
    parser.add_argument(
        "--images", action="append", default=[], type=built, metavar="ARCHITECTURE=FOLDER"
    )
    parser.add_argument("--sign", action="store_true", help="have cosign sign what was pushed")
    parser.add_argument("--key", type=Path, help="a key of cosign, instead of an identity")
    parser.add_argument("--output", type=Path, help="a file for the digests of what was pushed")
    parser.add_argument("--http", action="store_true", help="the registry speaks no TLS")
    return parser.parse_args()


def main() -> int:
    """Publish; the exit status is 2 if that cannot begin and 1 if it fails."""
    options = arguments()
    to = Destination(options.registry.rstrip("/"), options.http, options.sign, options.key)
    folders = dict(options.images)
    try:
        check_registry(to.registry)
        check_tools(images=bool(folders))
        check_cosign(wanted=to.sign)
    except ReleaseError as error:
        print(f"publish: {error}", file=sys.stderr)
        return USAGE
    pushed = []
    try:
        for name in publish(options.release.resolve(), folders, to):
            print(name, flush=True)
            pushed.append(name)
        if options.output:
            options.output.write_text("".join(map(checksum_line, pushed)))
    except (ReleaseError, LabError, OSError) as error:
        print(f"publish: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
