"""A report as a file: a gzipped tar archive, written whole or not at all."""

import gzip
import io
import os
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from numapin_cli.bundle.collected import OBJECTS
from numapin_cli.subcommand import CommandError

GZIP: Final = b"\x1f\x8b"
MOST_BYTES: Final = 1 << 30
"""Objects of a report that are read; 150,000 reduced pods have less."""


def packed(files: Mapping[str, bytes], folder: str, seconds: int) -> bytes:
    """The archive; all files are in one folder, and readable by their owner alone.

    Args:
        files: content by name.
        folder: the folder's name.
        seconds: the time of the files, in seconds since 1970.
    """
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size, member.mtime, member.mode = len(content), seconds, 0o600
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def write_new(file: Path, content: bytes) -> None:
    """Write a file that does not exist yet, for its owner alone; nothing is left if that fails.

    Raises:
        CommandError: it exists, or it cannot be written.
    """
    try:
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.") as temporary:
            temporary.write(content)
            temporary.flush()
            os.link(temporary.name, file)
    except FileExistsError as problem:
        raise CommandError(f"{file}: exists already; name another file with -o") from problem
    except OSError as problem:
        raise CommandError(f"{file}: {problem.strerror}; name another file with -o") from problem


def is_archive(file: Path) -> bool:
    """Whether a file is compressed as a report is.

    Raises:
        OSError: it cannot be read.
    """
    with file.open("rb") as stream:
        return stream.read(len(GZIP)) == GZIP


def objects_of(file: Path) -> str:
    """The objects of a report, as JSON.

    Raises:
        CommandError: it is no report, or a damaged one.
        OSError: it cannot be read.
    """
    try:
        with tarfile.open(file, "r:gz") as archive:
            for member in archive:
                if member.isfile() and member.name.rpartition("/")[2] == OBJECTS:
                    if member.size > MOST_BYTES:
                        raise CommandError(f"{file}: {OBJECTS} in it is larger than 1 GiB")
                    found = archive.extractfile(member)
                    assert found is not None, "it is a file"
                    return found.read().decode("utf-8")
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, UnicodeDecodeError) as problem:
        raise CommandError(f"{file}: is no report, or a damaged one: {problem}") from problem
    raise CommandError(
        f"{file}: there is no {OBJECTS} in it; give what numapin report wrote on a machine that"
        " reaches the API server"
    )
