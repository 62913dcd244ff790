"""Reads single files and folders of a machine's /sys or /proc."""

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from numapin_api.cpuset import MAX_ID, CpuSet, ListFormatError
from numapin_enforcer.hardware.sysfs.remarks import Remarks

CPU_FOLDER: Final = "devices/system/cpu"
NODE_FOLDER: Final = "devices/system/node"

_ABSENT: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO, errno.ELOOP})
"""The kernel's errors for a file that the machine does not have, dangling links included."""

_FILE_LIMIT_BYTES: Final = 1 << 20
"""Larger than any file read here: most have a page, meminfo some kilobytes."""

_MASK = re.compile(r"[0-9a-fA-F]{1,8}(,[0-9a-fA-F]{1,8})*", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,18}", re.ASCII)

Value = TypeVar("Value")


class SysfsTree:
    """One machine's /sys (or /proc), live or captured.

    Each reader takes a path below the root; its `{}` is replaced by `number`. It returns None if
    the file is absent. If the file cannot be read or parsed, it adds a remark and returns None.
    Remarks name paths below the root, after `shown_as`.
    """

    def __init__(self, root: Path, remarks: Remarks, shown_as: str = "") -> None:
        self.remarks = remarks
        self._prefix, self._shown_as = f"{root}/", shown_as

    def text(self, path: str, number: int = 0) -> str | None:
        """The file's text without white space and NUL bytes at its ends."""
        try:
            descriptor = os.open(self._prefix + path.replace("{}", str(number)), os.O_RDONLY)
            try:
                raw = _read_all(descriptor)
            finally:
                os.close(descriptor)
        except OSError as problem:
            if problem.errno not in _ABSENT:
                reason = os.strerror(problem.errno or errno.EIO)
                self.remarks.add(
                    f"{self._shown(path)} cannot be read ({reason}): treated as absent", number
                )
            return None
        return raw.replace(b"\0", b"").strip().decode("ascii", "replace")

    def link(self, path: str) -> str:
        """Where a symbolic link points, as it is written; empty if there is none."""
        try:
            return str(Path(self._prefix + path).readlink())
        except OSError:
            return ""

    def number(self, path: str, number: int = 0) -> int | None:
        """A decimal number."""
        return self._parsed(path, number, _parse_number, "is not a number")

    def ids(self, path: str, number: int = 0) -> CpuSet | None:
        """A kernel list; an empty file is the empty set."""
        return self._parsed(path, number, CpuSet.parse, "is not a list such as 0-3,8")

    def mask(self, path: str, number: int = 0) -> CpuSet | None:
        """A hexadecimal mask in groups of 32 bits, most significant first."""
        return self._parsed(path, number, _parse_mask, "is not a mask")

    def cpus(self, mask_path: str, list_path: str, number: int) -> CpuSet | None:
        """The CPUs of a mask, or of the list beside it if there is no mask.

        Masks come first: lists of old kernels name offline CPUs too.
        """
        read = self.mask(mask_path, number)
        return self.ids(list_path, number) if read is None else read

    def numbered(self, folder: str, prefix: str) -> CpuSet:
        """The numbers N of the entries `prefixN` in a folder; empty if there is no folder."""
        named = re.compile(re.escape(prefix) + r"([0-9]{1,5})", re.ASCII)
        found = (named.fullmatch(name) for name in self.names(folder))
        return CpuSet(int(match[1]) for match in found if match and int(match[1]) <= MAX_ID)

    def names(self, folder: str) -> list[str]:
        """The sorted names of a folder's entries; empty if there is no folder."""
        try:
            with os.scandir(self._prefix + folder) as entries:
                return sorted(entry.name for entry in entries)
        except OSError as problem:
            if problem.errno not in _ABSENT:
                reason = os.strerror(problem.errno or errno.EIO)
                self.remarks.add(
                    f"{self._shown(folder)} cannot be listed ({reason}): treated as absent"
                )
            return []

    def _shown(self, path: str) -> str:
        return self._shown_as + path.replace("{}", "[{}]")

    def _parsed(
        self, path: str, number: int, parse: Callable[[str], Value], problem: str
    ) -> Value | None:
        text = self.text(path, number)
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError:
            self.remarks.add(f"{self._shown(path)} {problem}: treated as absent", number)
            return None


def _read_all(descriptor: int) -> bytes:
    """Read to the end: one read of a sysfs file may return only a page."""
    chunks = [os.read(descriptor, 65536)]
    while chunks[-1] and sum(map(len, chunks)) < _FILE_LIMIT_BYTES:
        chunks.append(os.read(descriptor, 65536))
    return b"".join(chunks)


def _parse_number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    return int(text)


def _parse_mask(text: str) -> CpuSet:
    if not _MASK.fullmatch(text):
        raise ListFormatError(text, "a mask has hexadecimal groups")
    mask = 0
    for group in text.split(","):
        mask = mask << 32 | int(group, 16)
    if mask.bit_length() > MAX_ID + 1:
        raise ListFormatError(text, f"a mask has at most {MAX_ID + 1} bits")
    return CpuSet.from_mask(mask)
