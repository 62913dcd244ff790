"""The one image of the lab, made on the spot from the machine's static busybox: no registry."""

import hashlib
import io
import json
import platform
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numapin_lab.errors import MissingError

IMAGE = "localhost/numapin-lab:1"
# The name under which Kubernetes looks for `image: busybox:1.35`, so that a manifest written for
# any cluster runs here unchanged.
ALIASES = ("docker.io/library/busybox:1.35", "docker.io/library/busybox:stable")
BUSYBOX_REMEDY = "apt-get install -y --no-install-recommends busybox-static"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
FOLDERS = ("bin", "dev", "etc", "proc", "root", "sys", "tmp")
_PT_INTERP = 3


@dataclass(frozen=True)
class Blob:
    """Content and the digest that names it. Source: OCI image specification, "Descriptors"."""

    content: bytes
    media_type: str

    @property
    def digest(self) -> str:
        """`sha256:<hex>`."""
        return "sha256:" + hashlib.sha256(self.content).hexdigest()

    def descriptor(self) -> dict[str, Any]:
        """How other blobs refer to this one."""
        return {"mediaType": self.media_type, "digest": self.digest, "size": len(self.content)}


def find_busybox(path: str) -> Path:
    """A statically linked busybox on `path` (an image holds no shared libraries).

    Raises:
        MissingError: there is none.
    """
    found = shutil.which("busybox", path=path)
    if found is None or not is_static(Path(found).read_bytes()):
        raise MissingError("the lab's image is made of busybox-static", BUSYBOX_REMEDY)
    return Path(found)


def is_static(program: bytes) -> bool:
    """Whether a 64-bit ELF program asks for no interpreter. Source: elf(5)."""
    if program[:5] != b"\x7fELF\x02":
        return False
    start = int.from_bytes(program[32:40], "little")
    size = int.from_bytes(program[54:56], "little")
    count = int.from_bytes(program[56:58], "little")
    kinds = (
        int.from_bytes(program[start + size * number :][:4], "little") for number in range(count)
    )
    return _PT_INTERP not in kinds


def applets_of(busybox: Path) -> list[str]:
    """Every command this busybox can be."""
    answer = subprocess.run(
        [busybox, "--list"], capture_output=True, text=True, check=True, timeout=10
    )
    return answer.stdout.split()


def root_file_system(busybox: bytes, applets: Iterable[str]) -> bytes:
    """The tar of the image's only layer: busybox, its names, and the folders a container needs."""
    files = {
        "bin/busybox": (busybox, 0o755),
        "etc/passwd": (b"root:x:0:0:root:/root:/bin/sh\n", 0o644),
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder in FOLDERS:
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(entry)
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
        for applet in applets:
            if applet != "busybox":
                entry = tarfile.TarInfo(f"bin/{applet}")
                entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(entry)
    return buffer.getvalue()


def archive(layer: bytes, machine: str) -> bytes:
    """An OCI image layout as a tar, named IMAGE. Equal inputs give equal bytes."""
    system = {"architecture": ARCHITECTURES.get(machine, machine), "os": "linux"}
    layer_blob = Blob(layer, "application/vnd.oci.image.layer.v1.tar")
    settings = {
        **system,
        "config": {"Cmd": ["/bin/sleep", "2147483647"], "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [layer_blob.digest]},
    }
    config = Blob(_encode(settings), "application/vnd.oci.image.config.v1+json")
    kind = "application/vnd.oci.image.manifest.v1+json"
    parts = {
        "schemaVersion": 2,
        "mediaType": kind,
        "config": config.descriptor(),
        "layers": [layer_blob.descriptor()],
    }
    manifest = Blob(_encode(parts), kind)
    named = {
        **manifest.descriptor(),
        "platform": system,
        "annotations": {"io.containerd.image.name": IMAGE},
    }
    files = {
        "oci-layout": _encode({"imageLayoutVersion": "1.0.0"}),
        "index.json": _encode({"schemaVersion": 2, "manifests": [named]}),
    }
    for blob in (layer_blob, config, manifest):
        files["blobs/" + blob.digest.replace(":", "/")] = blob.content
    return _tar(files)


def write_image(path: Path, busybox: Path) -> None:
    """Make the image's tar, ready for `ctr images import`."""
    layer = root_file_system(busybox.read_bytes(), applets_of(busybox))
    path.write_bytes(archive(layer, platform.machine()))


def _encode(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _tar(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
