"""The command that shows what differs between two archives of an image."""

import hashlib
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "release" / "compare_images.py"


def tar(files: dict[str, bytes], time: int = 0) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(content), time
            archive.addfile(info, io.BytesIO(content))
    return made.getvalue()


def image(path: Path, layer: bytes, user: str = "0") -> Path:
    """An archive with one layer. Source: the Docker image specification 1.2."""
    digest = hashlib.sha256(layer).hexdigest()
    config = {"config": {"User": user}, "rootfs": {"diff_ids": [f"sha256:{digest}"]}}
    described = [{"Config": "config.json", "Layers": ["layer.tar"]}]
    parts = {"manifest.json": described, "config.json": config}
    files = {name: json.dumps(part).encode() for name, part in parts.items()}
    path.write_bytes(tar({**files, "layer.tar": layer}))
    return path


def compare(*archives: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, PROGRAM, *archives], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_the_same_image_is_the_same(tmp_path: Path) -> None:
    layer = tar({"a": b"1"})
    status, said = compare(image(tmp_path / "one.tar", layer), image(tmp_path / "two.tar", layer))
    assert (status, said.count("the same image sha256:")) == (0, 1)
    assert "its archives are the same file" in said


def test_each_file_that_differs_is_named_with_what_differs(tmp_path: Path) -> None:
    one = image(tmp_path / "one.tar", tar({"same": b"", "changed": b"1", "gone": b""}))
    two = image(tmp_path / "two.tar", tar({"same": b"", "changed": b"2", "new": b""}))
    status, said = compare(one, two)
    assert status == 1
    assert [line.strip() for line in said.splitlines()[2:]] == [
        "changed: content",
        "gone: only in the first",
        "new: only in the second",
    ]
    later = image(tmp_path / "later.tar", tar({"a": b"1"}, time=1), user="1")
    status, said = compare(image(tmp_path / "now.tar", tar({"a": b"1"})), later)
    assert status == 1
    assert "config: {'User': '0'} and {'User': '1'}" in said
    assert "  a: time" in said


def test_what_is_no_archive_of_an_image_is_named(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    status, said = compare(tmp_path / "text", tmp_path / "text")
    assert status == 2
    assert said.startswith("compare_images: ")
    assert compare(tmp_path / "text")[0] == 2
