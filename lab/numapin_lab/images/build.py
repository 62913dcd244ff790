"""Build numapin's images once for each state of their sources, and keep them in the cache."""

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from numapin_lab.components.build import Say, say
from numapin_lab.components.catalog import cache_root
from numapin_lab.errors import LabError, MissingError
from numapin_lab.images import base
from numapin_lab.processes.locks import locked

CHECKOUT = Path(__file__).resolve().parents[3]
# What images/Containerfile copies, and what it is built with.
SOURCES = (
    *("images", "pyproject.toml", "README.md", "LICENSE"),
    *("crds", "daemon", "client", "operator", "enforcer", "cli", "page"),
)
PROGRAMS = ("operator", "enforcer")
BASE = "localhost/numapin-base:lab"
TAG = "lab"
BUILDAH_REMEDY = "apt-get install -y --no-install-recommends buildah"
BUILD_SECONDS = 3600
UNUSED_SECONDS = 7 * 24 * 3600
# Needs neither overlay mounts nor user namespaces.
STORAGE = """[storage]
driver = "vfs"
graphroot = "{folder}/storage"
runroot = "{folder}/run"
"""


@dataclass(frozen=True)
class Image:
    """An image in an archive that `ctr images import` reads, and its name in there."""

    program: str
    archive: Path
    tag: str = TAG

    @property
    def name(self) -> str:
        """The name in the archive."""
        return f"localhost/numapin-{self.program}:{self.tag}"


def provide_images(
    environment: Mapping[str, str] = os.environ, progress: Say = say, checkout: Path = CHECKOUT
) -> tuple[Image, ...]:
    """Find images of the same sources, or build them (two to five minutes).

    Raises:
        MissingError: this machine lacks a program that is needed.
        LabError: a build failed; the message holds the end of its output.
    """
    cache = _cache(environment)
    folder = cache / sources_key(checkout)
    images = tuple(Image(one, folder / f"numapin-{one}-{TAG}.tar") for one in PROGRAMS)
    with locked(cache / "lock", lambda: progress("lab: waiting: another lab is building images")):
        if not folder.exists():
            _delete_unused(cache)
            check_builders(environment, checkout)
            root = base.provide_base(cache, environment, progress)
            _Build(checkout, cache, environment, progress).run(root, folder)
        os.utime(folder)
    return images


def build_images(
    checkout: Path, place: Path, environment: Mapping[str, str] = os.environ, progress: Say = say
) -> tuple[Image, ...]:
    """Build the images of any checkout in an empty folder, which gets the log of the build, too.

    Nothing of another build is used but the base, which is in the cache.

    Raises:
        MissingError: this machine lacks a program that is needed.
        LabError: a build failed; the message holds the end of its output.
    """
    cache = _cache(environment)
    with locked(cache / "lock", lambda: progress("lab: waiting: a lab is building images")):
        root = base.provide_base(cache, environment, progress)
    folder = place / "images"
    _Build(checkout, place, environment, progress).run(root, folder)
    return tuple(Image(one, folder / f"numapin-{one}-{TAG}.tar") for one in PROGRAMS)


def sources_key(checkout: Path) -> str:
    """A hash of every file that gets into an image or says how it is built."""
    content = hashlib.sha256(f"{platform.machine()} {base.key()}".encode())
    for file in _files(checkout):
        content.update(str(file.relative_to(checkout)).encode() + b"\0")
        content.update(hashlib.sha256(file.read_bytes()).digest())
    return content.hexdigest()[:16]


def _files(checkout: Path) -> Iterator[Path]:
    for name in SOURCES:
        found = checkout / name
        files = [found] if found.is_file() else sorted(found.rglob("*"))
        yield from (one for one in files if one.is_file() and one.parent.name != "__pycache__")


def check_builders(environment: Mapping[str, str] = os.environ, checkout: Path = CHECKOUT) -> None:
    """Check that the images are in the cache or can be built.

    Raises:
        MissingError: a program is missing.
    """
    cache = _cache(environment)
    if (cache / sources_key(checkout)).exists():
        return
    if shutil.which("buildah", path=environment.get("PATH", os.defpath)) is None:
        raise MissingError("numapin's images are built with buildah", BUILDAH_REMEDY)
    if not base.archive(cache).exists():
        base.find_debootstrap(environment)


def _cache(environment: Mapping[str, str]) -> Path:
    return cache_root(environment) / "images"


@dataclass(frozen=True)
class _Build:
    """One build of both images, with a storage of its own that is removed at the end."""

    checkout: Path
    cache: Path
    environment: Mapping[str, str]
    progress: Say

    @property
    def log(self) -> Path:
        """The output of all commands."""
        return self.cache / "build.log"

    def run(self, root: Path, folder: Path) -> None:
        """Build both on the base `root`; `folder` appears when they are complete.

        Raises:
            LabError: a command failed; the message holds the end of its output.
        """
        started = time.monotonic()
        self.progress(f"lab: building the images of numapin; the output: {self.log}")
        self.log.write_bytes(b"")
        with tempfile.TemporaryDirectory(prefix=".build-", dir=self.cache) as name:
            place = Path(name)
            (place / "storage.conf").write_text(STORAGE.format(folder=place))
            self._import_base(root, place)
            output = place / "output"
            options = ("--base", BASE, "--tag", TAG, "--output", str(output))
            self._command(place, str(self.checkout / "images/build"), *options, *PROGRAMS)
            output.replace(folder)
        self.progress(f"lab: built the images in {time.monotonic() - started:.0f} s")

    def _import_base(self, root: Path, place: Path) -> None:
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        container = self._command(place, "buildah", "from", "scratch").strip()
        self._command(place, "buildah", "add", "--quiet", container, str(root), "/")
        self._command(place, "buildah", "config", "--env", path, container)
        self._command(place, "buildah", "commit", "--quiet", "--timestamp", "0", container, BASE)

    def _command(self, place: Path, *command: str) -> str:
        """Run one command; returns its standard output."""
        settings = {
            "CONTAINERS_STORAGE_CONF": str(place / "storage.conf"),
            "BUILDAH_ISOLATION": "chroot",
        }
        with self.log.open("ab") as log:
            answer = subprocess.run(
                command,
                cwd=self.checkout,
                env={**self.environment, **settings},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                timeout=BUILD_SECONDS,
                check=False,
            )
            log.write(answer.stdout)
        if answer.returncode != 0:
            shown = " ".join(command[:2])
            raise LabError(f"{shown} failed; the end of {self.log}:\n{base.end_of(self.log)}")
        return answer.stdout.decode()


def _delete_unused(cache: Path) -> None:
    """Delete images that no lab has used for a week, and what an interrupted build has left."""
    for folder in cache.iterdir():
        unused = time.time() - folder.stat().st_mtime > UNUSED_SECONDS
        if folder.is_dir() and (unused or folder.name.startswith(".")):
            shutil.rmtree(folder)
