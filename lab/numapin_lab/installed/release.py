"""A lab in which numapin is installed from the files of a release, and from nothing else."""

import subprocess
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import yaml

from numapin_lab.errors import LabError
from numapin_lab.images.build import PROGRAMS, Image
from numapin_lab.installed import manifests
from numapin_lab.installed.cluster import InstalledCluster

SUMS = "SHA256SUMS"
CHECK = ("sha256sum", "--check", "--strict", "--quiet", SUMS)


class Release:
    """The folder of a release."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def check(self) -> None:
        """Compare each file with its checksum.

        Raises:
            LabError: a file differs or is missing; the message names it.
        """
        answer = subprocess.run(CHECK, cwd=self.folder, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            said = (answer.stdout + answer.stderr).strip()
            raise LabError(f"{' '.join(CHECK)} in {self.folder}:\n{said}")

    @property
    def version(self) -> str:
        """The version in the names of the files."""
        return self.manifests.name.removeprefix("numapin-").removesuffix("-default.yaml")

    @property
    def manifests(self) -> Path:
        """The default overlay in one file."""
        return self._only("numapin-*-default.yaml")

    @property
    def chart(self) -> Path:
        """The Helm chart."""
        return self._only(f"numapin-{self.version}.tgz")

    @property
    def images(self) -> Mapping[str, Image]:
        """The images by program."""
        tag = self.version
        return {one: Image(one, self._only(f"numapin-{one}-{tag}.tar"), tag) for one in PROGRAMS}

    def _only(self, pattern: str) -> Path:
        found = list(self.folder.glob(pattern))
        if len(found) != 1:
            raise LabError(f"{self.folder} has {len(found)} files {pattern}: is it a release?")
        return found[0]


class ReleasedCluster(InstalledCluster):
    """A lab with the images and the manifests of a release. Set `release` before `up`."""

    release: Release
    shown: ClassVar[str] = "kubectl apply --server-side -f numapin-VERSION-default.yaml"

    @cached_property
    def images(self) -> Mapping[str, Image]:
        """The release's images by program."""
        return self.release.images

    def documents(self) -> list[dict[str, Any]]:
        """What the file contains."""
        return [one for one in yaml.safe_load_all(self.release.manifests.read_text()) if one]

    def install(self) -> None:
        """Apply the file, and wait until every pod of numapin is ready.

        Raises:
            LabError: the API server refuses an object, or a pod does not become ready.
        """
        self.kubectl("apply", "--server-side", "-f", str(self.release.manifests))
        manifests.wait_rolled_out(self.api, self.kubectl)
