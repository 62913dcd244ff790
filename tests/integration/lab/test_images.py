"""What is in numapin's images, read from the archives that `images/build` writes for a lab."""

import json
import re
import tarfile
import tomllib
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name

from numapin_lab.images.build import BASE, PROGRAMS, provide_images

ROOT = Path(__file__).parents[3]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
SBOM = "opt/numapin/sbom.cdx.json"
MOST_BYTES = {"operator": 120 << 20, "enforcer": 90 << 20}
"""More than its base."""
USERS = {"operator": "65532:65532", "enforcer": "0"}
PACKAGE = re.compile(r".*/site-packages/([^/]+)-([^/-]+)\.dist-info/(.*)")


@dataclass(frozen=True)
class Built:
    """An image: its configuration, and the files that it has beside those of its base."""

    program: str
    archive: Path
    config: dict[str, Any]
    files: dict[str, bytes] = field(repr=False)

    @property
    def components(self) -> list[dict[str, Any]]:
        """What the SBOM lists."""
        return list(json.loads(self.files[SBOM])["components"])

    def of_packages(self) -> Iterator[tuple[tuple[str, str], str, bytes]]:
        """Each file about an installed package: name and version of that, path, content."""
        for path, content in self.files.items():
            if found := PACKAGE.fullmatch(path):
                yield (canonicalize_name(found[1]), found[2]), found[3], content


@pytest.fixture(scope="module", params=PROGRAMS)
def built(root: None, request: pytest.FixtureRequest) -> Built:
    """Built if this checkout's is not in the cache."""
    (image,) = (one for one in provide_images() if one.program == request.param)
    with tarfile.open(image.archive) as archive:
        (described,) = json.loads(_content(archive, "manifest.json"))
        config = json.loads(_content(archive, described["Config"]))
        files: dict[str, bytes] = {}
        for name in described["Layers"][1:]:  # the lab's base is one layer
            with tarfile.open(fileobj=archive.extractfile(name)) as layer:
                files |= {one.name: _content(layer, one.name) for one in layer if one.isreg()}
    return Built(image.program, image.archive, config, files)


def _content(archive: tarfile.TarFile, name: str) -> bytes:
    found = archive.extractfile(name)
    assert found is not None
    return found.read()


def test_the_sbom_lists_what_is_installed(built: Built) -> None:
    listed = {(canonicalize_name(one["name"]), one["version"]) for one in built.components}
    assert listed == {package for package, _, _ in built.of_packages()}
    assert ("numapin", VERSION) in listed
    beside = built.archive.with_name(f"{built.archive.stem}.sbom.cdx.json")
    assert beside.read_bytes() == built.files[SBOM]


def test_the_sbom_has_the_text_of_each_licence(built: Built) -> None:
    texts = {one["name"]: set(_texts(one)) for one in built.components}
    assert not [name for name, found in texts.items() if not found]
    shipped = [
        (package, path)
        for package, path, content in built.of_packages()
        if path.startswith("licenses/") and content not in set().union(*texts.values())
    ]
    assert shipped == []


def _texts(component: dict[str, Any]) -> Iterator[bytes]:
    """Source: CycloneDX 1.6, `licenses`; beside an expression, the texts are evidence."""
    stated = component.get("licenses", []) + component.get("evidence", {}).get("licenses", [])
    for one in stated:
        if text := one.get("license", {}).get("text"):
            encoded = text.get("encoding") == "base64"
            yield b64decode(text["content"]) if encoded else text["content"].encode()


def test_it_is_small(built: Built) -> None:
    assert sum(map(len, built.files.values())) < MOST_BYTES[built.program]


def test_nothing_of_its_build_is_in_it(built: Built) -> None:
    assert {path for path in built.files if not path.startswith("opt/numapin/")} == set()
    assert not {"pip", "setuptools", "hatchling"} & {
        name for (name, _), _, _ in built.of_packages()
    }


def test_it_says_what_it_is(built: Built) -> None:
    config, prefix = built.config["config"], "org.opencontainers.image"
    assert config["User"] == USERS[built.program]
    assert config["Entrypoint"] == [f"numapin-{built.program}"]
    labels = config["Labels"]
    assert labels.pop(f"{prefix}.description")
    assert {name: one for name, one in labels.items() if name.startswith(prefix)} == {
        f"{prefix}.title": f"numapin-{built.program}",
        f"{prefix}.licenses": "Apache-2.0",
        f"{prefix}.version": VERSION,
        f"{prefix}.base.name": BASE,
    }
