#!/usr/bin/env python3
"""Show whether the same sources give the same images.

    .venv/bin/python release/compare_images.py                 build HEAD twice, and compare
    .venv/bin/python release/compare_images.py ONE.tar TWO.tar compare two archives of one image

Both builds are of clones of their own, in folders with names of different lengths, one after the
other, on the same base, and share nothing else. Where layers differ, the files that differ are
listed. The exit status is 0 if all images are the same, 1 if one differs, 2 if they cannot be
compared.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from numapin_lab.errors import LabError
from numapin_lab.images.build import build_images

ROOT: Final = Path(__file__).resolve().parents[1]
CLONES: Final = ("a", "another-folder-for-the-second-clone")
SHOWN: Final = 40
"""So many differences of one layer are listed."""


@dataclass(frozen=True)
class Entry:
    """A file of a layer: everything about it that gets into the layer's digest."""

    kind: str
    mode: int
    owner: tuple[int, int]
    time: float
    link: str
    content: str


@dataclass(frozen=True)
class Archive:
    """One image in an archive of `images/build`. Source: the Docker image specification 1.2."""

    path: Path
    config: Mapping[str, Any]
    layers: tuple[str, ...]
    id: str

    @classmethod
    def read(cls, path: Path) -> "Archive":
        """Read what describes the image.

        Raises:
            OSError, tarfile.TarError, ValueError, LookupError: it is no archive of an image.
        """
        with tarfile.open(path) as archive:
            (image,) = json.loads(_content(archive, "manifest.json"))
            config = _content(archive, image["Config"])
        digest = hashlib.sha256(config).hexdigest()
        return cls(path, json.loads(config), tuple(image["Layers"]), digest)

    @property
    def digests(self) -> list[str]:
        """The digest of each layer, uncompressed."""
        return list(self.config["rootfs"]["diff_ids"])

    def entries(self, number: int) -> dict[str, Entry]:
        """Each file of a layer, by its path."""
        with tarfile.open(self.path) as archive:
            layer = archive.extractfile(self.layers[number])
            assert layer is not None
            with tarfile.open(fileobj=layer) as files:
                return {one.name: _entry(files, one) for one in files}


def _content(archive: tarfile.TarFile, name: str) -> bytes:
    found = archive.extractfile(name)
    assert found is not None
    return found.read()


def _entry(files: tarfile.TarFile, one: tarfile.TarInfo) -> Entry:
    content = files.extractfile(one).read() if one.isreg() else b""  # type: ignore[union-attr]
    digest = hashlib.sha256(content).hexdigest()
    owner = (one.uid, one.gid)
    return Entry(one.type.decode(), one.mode, owner, one.mtime, one.linkname, digest)


def differences(one: Archive, other: Archive) -> Iterator[str]:
    """What differs, a line for each; nothing if the images are the same."""
    for name in sorted(one.config.keys() | other.config.keys()):
        if name != "rootfs" and one.config.get(name) != other.config.get(name):
            yield f"{name}: {one.config.get(name)} and {other.config.get(name)}"
    if len(one.layers) != len(other.layers):
        yield f"{len(one.layers)} and {len(other.layers)} layers"
        return
    for number, (first, second) in enumerate(zip(one.digests, other.digests, strict=True)):
        if first != second:
            yield f"layer {number + 1}: {first} and {second}"
            yield from _of_layer(one.entries(number), other.entries(number))


def _of_layer(one: Mapping[str, Entry], other: Mapping[str, Entry]) -> Iterator[str]:
    changed = [
        name for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name)
    ]
    for name in changed[:SHOWN]:
        first, second = one.get(name), other.get(name)
        if first is None or second is None:
            yield f"  {name}: only in the {'second' if first is None else 'first'}"
            continue
        before, after = vars(first), vars(second)
        what = ", ".join(field for field in before if before[field] != after[field])
        yield f"  {name}: {what}"
    if len(changed) > SHOWN:
        yield f"  and {len(changed) - SHOWN} more"
    if not changed:
        yield "  no file: their order, or what else the archive says of them"


def built_twice(folder: Path) -> list[tuple[Path, Path]]:
    """Build HEAD twice; the archives of each image.

    Raises:
        LabError: a build failed, or git did.
    """
    made = []
    for name in CLONES:
        place = folder / name
        command = ("git", "clone", "--quiet", str(ROOT), str(place / "sources"))
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            raise LabError(f"git clone failed: {answer.stderr.strip()}")
        made.append([image.archive for image in build_images(place / "sources", place)])
    return list(zip(*made, strict=True))


def compare(first: Path, second: Path) -> bool:
    """Print whether two archives hold the same image; returns it."""
    one, other = Archive.read(first), Archive.read(second)
    found = list(differences(one, other))
    if found:
        print(f"{first.stem}: not the same image", *found, sep="\n")
    else:
        same = "the same file" if first.read_bytes() == second.read_bytes() else "different files"
        print(f"{first.stem}: the same image sha256:{one.id}; its archives are {same}")
    return not found


def main() -> int:
    """Compare what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("archives", nargs="*", type=Path, help="two archives; none: build them")
    archives = parser.parse_args().archives
    if len(archives) not in {0, 2}:
        parser.error("name two archives, or none")
    try:
        with tempfile.TemporaryDirectory(prefix="numapin-images-") as folder:
            pairs = [tuple(archives)] if archives else built_twice(Path(folder))
            same = [compare(first, second) for first, second in pairs]
    except (LabError, OSError, tarfile.TarError, ValueError, LookupError) as error:
        print(f"compare_images: {error}", file=sys.stderr)
        return 2
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
