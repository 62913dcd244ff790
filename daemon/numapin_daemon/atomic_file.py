"""Files that are replaced as a whole, also when the power fails."""

import os
from pathlib import Path


def replace(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace a file, or create it; its folder must exist.

    After a power cut there is the old content or the new one, never a part. Readers never see a
    part either. Only one writer may replace the same file at a time: the new content is written to
    a file of the same name with the suffix `.new`, which no crash can make more than one of.

    Args:
        path: the file.
        data: all of its content.
        mode: its permission bits, whatever the umask.

    Raises:
        OSError: it could not be written, and the old content is there; or the new content is
            there, and a power cut may still bring the old one back.
    """
    fresh = path.with_suffix(".new")
    try:
        _write(fresh, data, mode)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _write(path: Path, data: bytes, mode: int) -> None:
    with path.open("wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make a rename in the folder durable. Source: fsync(2), "does not necessarily ensure"."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
