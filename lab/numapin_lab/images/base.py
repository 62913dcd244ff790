"""The base of numapin's images when no registry is at hand: a small Debian with Python."""

import hashlib
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from numapin_lab.components.build import Say
from numapin_lab.errors import LabError, MissingError

RELEASE = "bookworm"
PACKAGES = ("python3", "python3-venv", "ca-certificates")
MIRROR = "http://deb.debian.org/debian"
MIRROR_VARIABLE = "NUMAPIN_LAB_MIRROR"
DEBOOTSTRAP_REMEDY = "apt-get install -y --no-install-recommends debootstrap"
DEBOOTSTRAP_SECONDS = 1800
ADMINISTRATION = ":/usr/sbin:/sbin"
"""Folders that the PATH of a user may lack."""
# Files that no program of the images reads; they are half of what debootstrap writes.
UNUSED = (
    *("var/cache/apt", "var/lib/apt/lists", "var/log"),
    *("usr/share/doc", "usr/share/locale", "usr/share/man"),
)


def key() -> str:
    """A hash of what a base is made from. It says nothing about the versions in the mirror."""
    parts = (platform.machine(), RELEASE, *PACKAGES, *UNUSED)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def archive(cache: Path) -> Path:
    """Where the base is kept, as a tar of its root."""
    return cache / f"base-{key()}.tar"


def provide_base(cache: Path, environment: Mapping[str, str], progress: Say) -> Path:
    """Find the base in `cache`, or make it (about a minute); returns a tar of its root.

    Raises:
        MissingError: debootstrap is missing.
        LabError: it failed; the message holds the end of its output.
    """
    made = archive(cache)
    if made.exists():
        return made
    log = cache / "base.log"
    progress(f"lab: making the images' base, a small Debian {RELEASE}; the output: {log}")
    with tempfile.TemporaryDirectory(prefix=".base-", dir=cache) as folder:
        root = Path(folder) / "root"
        root.mkdir(mode=0o755)
        _debootstrap(root, log, environment)
        for name in UNUSED:
            _empty(root / name)
        partial = Path(folder) / "base.tar"
        with tarfile.open(partial, "w") as tar:
            tar.add(root, arcname=".")
        partial.replace(made)
    return made


def find_debootstrap(environment: Mapping[str, str], folders: str = ADMINISTRATION) -> str:
    """Find debootstrap, which is in a folder of the administrator.

    Raises:
        MissingError: there is none.
    """
    program = shutil.which("debootstrap", path=environment.get("PATH", os.defpath) + folders)
    if program is None:
        raise MissingError("debootstrap makes the base of the images", DEBOOTSTRAP_REMEDY)
    return program


def _debootstrap(root: Path, log: Path, environment: Mapping[str, str]) -> None:
    program = find_debootstrap(environment)
    mirror = environment.get(MIRROR_VARIABLE) or MIRROR
    included = f"--include={','.join(PACKAGES)}"
    with log.open("wb") as output:
        answer = subprocess.run(
            [program, "--variant=minbase", included, RELEASE, str(root), mirror],
            env={**environment, "PATH": environment.get("PATH", os.defpath) + ADMINISTRATION},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=DEBOOTSTRAP_SECONDS,
            check=False,
        )
    if answer.returncode != 0:
        raise LabError(
            f"debootstrap from {mirror} failed ({MIRROR_VARIABLE} names another mirror); "
            f"the end of {log}:\n{end_of(log)}"
        )


def end_of(log: Path) -> str:
    """The last lines of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-15:])


def _empty(folder: Path) -> None:
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
