"""The plug-in of kubectl as krew installs it: an archive for each platform, and krew's manifest.

Pydantic and aiohttp contain machine code, so one archive for every platform cannot be. This one has
the wheels of one platform for each Python, and a launcher that chooses. It asks no index when it
runs. Archives for other platforms than this one are made of wheels alone, and not run here.
"""

import gzip
import hashlib
import io
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[1]
LOCK: Final = ROOT / "release" / "kubectl-plugin.lock"
LAUNCHER: Final = "kubectl-numapin"
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS: Final = {
    "linux-amd64": ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    "linux-arm64": ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
    "darwin-amd64": ("macosx_13_0_x86_64",),
    "darwin-arm64": ("macosx_13_0_arm64",),
}
"""The wheels of each platform of krew, newer ones first. Source: PEP 600.

Wheels for older releases of macOS than the named one are taken, too."""

RUN: Final = """\
import sys

here, abi, *arguments = sys.argv[1:]
sys.path[:0] = [f"{here}/{abi}", f"{here}/common"]
sys.argv = [f"{here}/kubectl-numapin", *arguments]
from numapin_cli.main import main

sys.exit(main())
"""

# Written by pip; they name folders of this machine, and nothing reads them.
UNUSED: Final = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")

Run = Callable[..., str]


def build_plugin(folder: Path, platform: str, version: str, time: int, run: Run) -> Path:
    """Write the archive of a platform.

    Args:
        folder: has the wheel of numapin; the archive is written there.
        platform: one of `PLATFORMS`.
        version: the release.
        time: of each file in the archive.
        run: runs a command in the project's folder.
    """
    (wheel,) = folder.glob("*.whl")
    archive = folder / f"kubectl-numapin-{version}-{platform}.tar.gz"
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        for python in PYTHONS:
            _install(root / f"cp{python.replace('.', '')}", (python, platform), wheel, run)
        _share(root)
        (root / "run.py").write_text(RUN)
        shutil.copy(ROOT / "LICENSE", root / "LICENSE")
        shutil.copy(ROOT / "release" / LAUNCHER, root / LAUNCHER)
        archive.write_bytes(pack(root, time))
    return archive


def _install(target: Path, machine: tuple[str, str], wheel: Path, run: Run) -> None:
    """Install numapin and exactly what is locked for one Python on one platform."""
    python, platform = machine
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    where = (f"--target={target}", f"--python-version={python}", "--implementation=cp")
    platforms = [f"--platform={one}" for one in PLATFORMS[platform]]
    options = (*where, *platforms, "--only-binary=:all:", "--no-compile", "--no-deps")
    run(*pip, *options, "--require-hashes", "-r", LOCK)
    run(*pip, *options, "--no-index", wheel)
    shutil.rmtree(target / "bin", ignore_errors=True)
    for name in UNUSED:
        for file in target.glob(f"*.dist-info/{name}"):
            file.unlink()


def _share(root: Path) -> None:
    """Keep what is the same for every Python once."""
    targets = sorted(root.glob("cp*"))
    common = root / "common"
    common.mkdir()
    for entry in sorted(targets[0].iterdir()):
        contents = [dict(_contents(target / entry.name)) for target in targets]
        if all(one == contents[0] for one in contents):
            entry.rename(common / entry.name)
            for target in targets[1:]:
                _remove(target / entry.name)


def _contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """Each file of a folder, or a file itself; nothing if there is none."""
    if path.is_file():
        yield "", path.read_bytes()
    for file in sorted(path.rglob("*")):
        if file.is_file():
            yield str(file.relative_to(path)), file.read_bytes()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def pack(root: Path, time: int) -> bytes:
    """A .tar.gz that depends on the content of the files only, and on `time`."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for file in sorted(root.rglob("*")):
            if not file.is_file():
                continue
            info = tarfile.TarInfo(str(file.relative_to(root)))
            info.size, info.mtime = file.stat().st_size, time
            info.mode = 0o755 if file.name == LAUNCHER else 0o644
            with file.open("rb") as content:
                archive.addfile(info, content)
    return gzip.compress(tar.getvalue(), mtime=0)


def krew_manifest(archives: Mapping[str, Path], version: str, downloads: str) -> str:
    """What `kubectl krew install --manifest` reads.

    Args:
        archives: what `build_plugin` has written for each platform.
        version: the release.
        downloads: the URL of the folder where the release can be downloaded.

    Source: krew, "Plugin manifest".
    """
    spec = {
        "version": f"v{version}",
        "shortDescription": "Show and plan exclusive CPUs and local memory",
        "description": (
            "Shows which containers have which exclusive CPUs and NUMA nodes, says why a pod has\n"
            "none, and plans policies before they are applied. Part of the operator numapin.\n"
        ),
        "caveats": f"Needs Python {PYTHONS[0]} to {PYTHONS[-1]} (CPython); on Linux glibc.\n",
        "platforms": [_platform(one, archive, downloads) for one, archive in archives.items()],
    }
    kind = {"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin"}
    return yaml.safe_dump({**kind, "metadata": {"name": "numapin"}, "spec": spec}, sort_keys=False)


def _platform(platform: str, archive: Path, downloads: str) -> dict[str, object]:
    """The entry of a platform in krew's manifest."""
    system, machine = platform.split("-")
    return {
        "selector": {"matchLabels": {"os": system, "arch": machine}},
        "uri": f"{downloads.rstrip('/')}/{archive.name}" if downloads else archive.name,
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "bin": LAUNCHER,
    }
