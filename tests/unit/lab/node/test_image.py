"""The image that every pod of the lab runs."""

import hashlib
import io
import json
import tarfile

from numapin_lab.node import image


def members(archive: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {member.name: member for member in tar.getmembers()}


def content(archive: bytes, name: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        file = tar.extractfile(name)
        assert file is not None
        return file.read()


def test_the_image_holds_busybox_under_each_of_its_names() -> None:
    layer = image.root_file_system(b"program", ["busybox", "sh", "taskset"])
    found = members(layer)
    assert content(layer, "bin/busybox") == b"program"
    assert found["bin/busybox"].mode == 0o755
    assert found["bin/sh"].linkname == found["bin/taskset"].linkname == "busybox"
    assert found["tmp"].mode == 0o1777


def test_the_image_is_a_consistent_oci_layout() -> None:
    archive = image.archive(image.root_file_system(b"program", ["sh"]), "x86_64")
    blobs = {
        "sha256:" + name.rpartition("/")[2]: content(archive, name)
        for name in members(archive)
        if name.startswith("blobs/")
    }
    for digest, blob in blobs.items():
        assert digest == "sha256:" + hashlib.sha256(blob).hexdigest()
    index = json.loads(content(archive, "index.json"))
    manifest = json.loads(blobs[index["manifests"][0]["digest"]])
    config = json.loads(blobs[manifest["config"]["digest"]])
    assert index["manifests"][0]["annotations"] == {"io.containerd.image.name": image.IMAGE}
    assert config["architecture"] == "amd64"
    assert config["rootfs"]["diff_ids"] == [layer["digest"] for layer in manifest["layers"]]


def test_equal_inputs_give_the_same_image() -> None:
    layer = image.root_file_system(b"program", ["sh"])
    assert image.archive(layer, "aarch64") == image.archive(layer, "aarch64")
