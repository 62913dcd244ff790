"""A Linux kernel and its modules for the virtual machine, from Debian's package.

The kernel installed on this machine is used if there is one. Otherwise apt downloads the package,
and it is unpacked in the cache, so that it does not change how this machine boots.
`NUMAPIN_LAB_KERNEL=backports` chooses the newer one of Debian's backports, `sid` the newest.
"""

import lzma
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from numapin_lab.components.build import Say, say
from numapin_lab.components.catalog import cache_root
from numapin_lab.errors import LabError, MissingError
from numapin_lab.images.base import MIRROR, MIRROR_VARIABLE, RELEASE
from numapin_lab.node.containerd import SEARCH_PATH
from numapin_lab.processes.locks import locked

VARIABLE = "NUMAPIN_LAB_KERNEL"
SUITES = {"backports": f"{RELEASE}-backports", "sid": "sid"}
"""The values of `VARIABLE`, and the suite of Debian that has the kernel."""

PACKAGE = "linux-image-amd64"
FETCH_SECONDS = 600
XZ_MAGIC = b"\xfd7zXZ\x00"
ELF_MAGIC = b"\x7fELF"
BZIMAGE_MAGIC, BZIMAGE_MAGIC_AT = b"HdrS", 0x202
REMEDY = "apt-get install -y --no-install-recommends linux-image-amd64"
PROGRAM_REMEDY = "lab/system-packages"


@dataclass(frozen=True)
class Kernel:
    """`image` is an unpacked ELF kernel, `modules` its folder with modules.dep."""

    image: Path
    modules: Path


def provide_kernel(environment: Mapping[str, str] = os.environ, progress: Say = say) -> Kernel:
    """Find a kernel, or fetch one.

    Raises:
        MissingError: no kernel is installed and apt cannot provide one.
        LabError: fetching failed, or `NUMAPIN_LAB_KERNEL` is not understood.
    """
    chosen = environment.get(VARIABLE, "")
    if chosen not in {"", *SUITES}:
        known = " or ".join(SUITES)
        raise LabError(f"{VARIABLE} is {chosen!r}; leave it empty, or set it to {known}")
    cache = cache_root(environment)
    folder = cache / f"kernel-{chosen}" if chosen else cache / "kernel"
    with locked(folder / "lock"):
        kernel = _find(folder, chosen)
        if kernel is None:
            _fetch(folder, _suite(chosen, folder, environment) if chosen else [], progress)
            kernel = _find(folder, chosen)
    if kernel is None:
        raise MissingError(f"{PACKAGE} contains no usable kernel", REMEDY)
    return kernel


def _find(folder: Path, chosen: str) -> Kernel | None:
    for root in (folder,) if chosen else (Path("/"), folder):
        for packed, modules in _packages(root):
            if (modules / "modules.dep").exists() and os.access(packed, os.R_OK):
                return Kernel(_unpacked(packed, folder / f"vmlinux-{modules.name}"), modules)
    return None


def _packages(root: Path) -> Iterator[tuple[Path, Path]]:
    """The packed kernels below `root`, and their modules; from Linux 7 on both lie together."""
    for packed in sorted((root / "boot").glob("vmlinuz-*-amd64"), reverse=True):
        yield packed, root / "lib" / "modules" / packed.name.removeprefix("vmlinuz-")
    for packed in sorted((root / "usr" / "lib" / "modules").glob("*-amd64/vmlinuz"), reverse=True):
        yield packed, packed.parent


def unpack(image: bytes) -> bytes:
    """The ELF kernel inside a bzImage; booting it directly saves seconds of unpacking.

    A bzImage that is not compressed with xz is returned as it is: Linux 6.12 uses zstd.

    Raises:
        LabError: this is no bzImage. Source: Linux, Documentation/arch/x86/boot.rst.
    """
    at = image.find(XZ_MAGIC)
    while at >= 0:
        try:
            kernel = lzma.LZMADecompressor().decompress(image[at:])
        except lzma.LZMAError:
            kernel = b""
        if kernel.startswith(ELF_MAGIC):
            return kernel
        at = image.find(XZ_MAGIC, at + 1)
    if not image.startswith(BZIMAGE_MAGIC, BZIMAGE_MAGIC_AT):
        raise LabError(
            "the kernel image contains no ELF kernel compressed with xz, and is no bzImage"
        )
    return image


def module_files(dependencies: str, names: Iterable[str]) -> list[str]:
    """Files of modules, each after its dependencies; a built-in module has no file.

    `dependencies` is the text of modules.dep. Source: modules.dep(5).
    """
    table: dict[str, list[str]] = {}
    for line in dependencies.splitlines():
        file, _, needed = line.partition(":")
        table[_module_name(file)] = [*reversed(needed.split()), file]
    found = [file for name in names for file in table.get(name.replace("-", "_"), ())]
    return list(dict.fromkeys(found))


def _module_name(file: str) -> str:
    return re.sub(r"\.ko(\.\w+)?$", "", Path(file).name).replace("-", "_")


def _unpacked(packed: Path, target: Path) -> Path:
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        partial.write_bytes(unpack(packed.read_bytes()))
        partial.replace(target)
    return target


def _suite(chosen: str, folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Options with which apt knows that suite alone, without a change of this machine."""
    lists, sources = folder / "lists", folder / "sources.list"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    mirror = environment.get(MIRROR_VARIABLE) or MIRROR
    sources.write_text(f"deb {mirror} {SUITES[chosen]} main\n")
    settings = (
        f"Dir::Etc::SourceList={sources}",
        "Dir::Etc::SourceParts=-",
        f"Dir::State::Lists={lists}",
        f"Dir::Cache={folder / 'archives'}",
    )
    options = [part for one in settings for part in ("-o", one)]
    _run(["apt-get", *options, "update", "-q"], folder)
    return options


def _fetch(folder: Path, options: Sequence[str], progress: Say) -> None:
    """Download the package that PACKAGE depends on, with its parts, and unpack it."""
    if shutil.which("apt-get") is None or platform.machine() != "x86_64":
        raise MissingError("the virtual machine needs a Linux kernel for amd64", REMEDY)
    listing = _run(["apt-cache", *options, "depends", PACKAGE], folder)
    name = re.search(r"Depends: (linux-image-\S+)", listing)
    if name is None:
        raise MissingError(f"apt knows no {PACKAGE}", "apt-get update")
    progress(f"lab: fetching {name[1]} into {folder}")
    listing = _run(["apt-cache", *options, "depends", name[1]], folder)
    parts = re.findall(r"Depends: (linux-(?:binary|modules)-\S+)", listing)
    _run(["apt-get", *options, "download", "-q", name[1], *parts], folder)
    for package in folder.glob("linux-*.deb"):
        _run(["dpkg", "-x", str(package), "."], folder)
        package.unlink()
    above = next(one for one in (folder / "lib", folder / "usr" / "lib") if one.is_dir())
    (release,) = (above / "modules").iterdir()
    _run(["depmod", "-b", str(above.parent), release.name], folder)


def _run(command: list[str], folder: Path) -> str:
    program = shutil.which(command[0], path=SEARCH_PATH)
    if program is None:
        raise MissingError(
            f"{command[0]} is missing; it is needed to fetch a kernel", PROGRAM_REMEDY
        )
    folder.mkdir(parents=True, exist_ok=True)
    answer = subprocess.run(
        [program, *command[1:]],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=FETCH_SECONDS,
        stdin=subprocess.DEVNULL,
    )
    if answer.returncode != 0:
        raise LabError(f"{' '.join(command)}: {answer.stderr.strip()}")
    return answer.stdout
