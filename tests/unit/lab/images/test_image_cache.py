"""Images are built again when a source has changed, and at no other time."""

import os
import time
from pathlib import Path

import pytest

from numapin_lab.errors import MissingError
from numapin_lab.images import base
from numapin_lab.images.build import (
    CHECKOUT,
    PROGRAMS,
    SOURCES,
    UNUSED_SECONDS,
    check_builders,
    provide_images,
    sources_key,
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    for name in SOURCES:
        path = folder / name
        if (CHECKOUT / name).is_dir():
            path.mkdir(parents=True)
            path /= "file.py"
        path.write_text(name)
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A machine without any program."""
    return {"NUMAPIN_LAB_CACHE": str(tmp_path / "cache"), "PATH": str(tmp_path)}


def cached(checkout: Path, environment: dict[str, str]) -> Path:
    folder = Path(environment["NUMAPIN_LAB_CACHE"]) / "images" / sources_key(checkout)
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize("name", SOURCES)
def test_each_source_counts(name: str, checkout: Path) -> None:
    before = sources_key(checkout)
    path = checkout / name
    (path / "file.py" if path.is_dir() else path).write_text("changed")
    assert sources_key(checkout) != before


def test_compiled_files_do_not_count(checkout: Path) -> None:
    before = sources_key(checkout)
    compiled = checkout / "operator" / "__pycache__"
    compiled.mkdir()
    (compiled / "file.cpython-311.pyc").write_bytes(b"compiled")
    assert sources_key(checkout) == before


def test_every_folder_that_the_containerfile_copies_counts() -> None:
    text = (CHECKOUT / "images" / "Containerfile").read_text()
    copied = {
        word.partition("/")[0]
        for line in text.splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for word in line.split()[1:-1]
    }
    assert copied == set(SOURCES)


def test_images_in_the_cache_need_no_program(checkout: Path, environment: dict[str, str]) -> None:
    folder = cached(checkout, environment)
    os.utime(folder, (0, 0))
    check_builders(environment, checkout)
    images = provide_images(environment, checkout=checkout)
    assert [image.program for image in images] == list(PROGRAMS)
    assert {image.archive.parent for image in images} == {folder}
    assert time.time() - folder.stat().st_mtime < UNUSED_SECONDS  # used now


def test_without_buildah_it_says_what_to_install(
    checkout: Path, environment: dict[str, str]
) -> None:
    with pytest.raises(MissingError, match=r"apt-get install .*buildah"):
        check_builders(environment, checkout)


def test_without_debootstrap_it_says_what_to_install(environment: dict[str, str]) -> None:
    with pytest.raises(MissingError, match=r"apt-get install .*debootstrap"):
        base.find_debootstrap({"PATH": environment["PATH"]}, folders="")
