"""Which cgroups of a tree appear, vanish or have their cpuset files written (inotify(7))."""

import ctypes
import errno
import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntFlag
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from numapin_enforcer.cgroups.files import list_folders
from numapin_enforcer.cgroups.tree import CgroupVanishedError

WATCHED_FILES: Final = frozenset(
    {"cpuset.cpus", "cpuset.mems", "cpuset.cpus.partition", "cpu.max", "cpu.cfs_quota_us"}
)
"""Writes to other files of a cgroup (its processes, its memory) are none of our business."""

_HINTS: Final = {
    errno.ENOSPC: "; raise fs.inotify.max_user_watches",
    errno.EMFILE: "; raise fs.inotify.max_user_instances",
}

_HEADER: Final = struct.Struct("iIII")
_READ_BYTES: Final = 64 * 1024
MOST_READS: Final = 32
"""As many hold more than a queue (fs.inotify.max_queued_events, 16384); who still finds some then
is in a storm, and leaves the rest for the next time."""


class _Mask(IntFlag):
    """Event bits. Source: linux/inotify.h."""

    MODIFY = 0x2
    MOVED_FROM = 0x40
    MOVED_TO = 0x80
    CREATE = 0x100
    DELETE = 0x200
    Q_OVERFLOW = 0x4000
    ONLYDIR = 0x1000000
    ISDIR = 0x40000000


_WANTED: Final = (
    _Mask.MODIFY | _Mask.CREATE | _Mask.DELETE | _Mask.MOVED_FROM | _Mask.MOVED_TO | _Mask.ONLYDIR
)


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened since the last read; paths are folders, relative to the mount.

    `overflowed` says that the kernel dropped events or that the tree's root came or went: only a
    full look at the tree tells what is there.
    """

    appeared: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    overflowed: bool = False


@dataclass(slots=True)
class _Batch:
    appeared: dict[str, None] = field(default_factory=dict)
    vanished: dict[str, None] = field(default_factory=dict)
    written: dict[str, None] = field(default_factory=dict)
    overflowed: bool = False

    def frozen(self) -> Changes:
        return Changes(
            tuple(self.appeared), tuple(self.vanished), tuple(self.written), self.overflowed
        )


class CgroupWatch:
    """Watches one folder tree that may come and go: `root`, relative to `mount`.

    Not a queue of truths: an event only says where to look. A folder that is made while its parent
    is only just being watched is found by listing, so it may be told twice, never missed.

    Raises:
        OSError: inotify is not to be had.
        CgroupError: a folder could not be listed.
    """

    def __init__(self, mount: Path, root: str) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._mount, self._root, self._above = f"{mount}/", root, root.rpartition("/")[0]
        self._paths: dict[int, str] = {}
        self._watches: dict[str, int] = {}
        self._descriptor = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self.problem = ""
        """Why not everything is watched; empty when it is."""
        self._add(self._above)
        self._add_tree(root, _Batch())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def fileno(self) -> int:
        """The descriptor that becomes readable when something happened."""
        return self._descriptor

    def close(self) -> None:
        """Stop watching."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def cover(self, paths: Iterable[str]) -> None:
        """Watch also these, which were found by looking.

        That is needed for what is below a parent that came late, and for a folder whose watch the
        kernel refused (fs.inotify.max_user_watches), of which `problem` tells.
        """
        self.problem = ""
        for path in (self._above, *paths):
            if path not in self._watches:
                self._add(path)

    def read(self) -> Changes:
        """Everything that happened since the last read; never waits, nor goes on for ever."""
        batch = _Batch()
        with suppress(BlockingIOError):
            for _ in range(MOST_READS):
                data = os.read(self._descriptor, _READ_BYTES)
                for watch, mask, name in _parse(data):
                    self._note(batch, watch, _Mask(mask), name)
        if batch.overflowed:
            self._add_tree(self._root, batch)
            for path in self._watches.keys() - batch.appeared.keys() - {self._above}:
                self._drop(path)
        return batch.frozen()

    def _note(self, batch: _Batch, watch: int, mask: _Mask, name: str) -> None:
        if mask & _Mask.Q_OVERFLOW:
            batch.overflowed = True
            return
        folder = self._paths.get(watch)
        if folder is None:
            return
        path = f"{folder}/{name}" if folder else name
        if folder == self._above and path != self._root:
            return
        if mask & _Mask.ISDIR:
            self._note_folder(batch, path, mask)
        elif mask & _Mask.MODIFY and name in WATCHED_FILES:
            batch.written[folder] = None

    def _note_folder(self, batch: _Batch, folder: str, mask: _Mask) -> None:
        batch.overflowed |= folder == self._root
        if mask & (_Mask.CREATE | _Mask.MOVED_TO):
            self._add_tree(folder, batch)
        else:
            self._drop(folder)
            batch.appeared.pop(folder, None)
            batch.vanished[folder] = None

    def _add_tree(self, folder: str, batch: _Batch) -> None:
        """Watch a folder and all below it; one that is gone by now is no news."""
        if not self._add(folder):
            return
        batch.appeared[folder] = None
        batch.vanished.pop(folder, None)
        with suppress(CgroupVanishedError):
            for name in list_folders(self._mount + folder):
                self._add_tree(f"{folder}/{name}", batch)

    def _add(self, folder: str) -> bool:
        try:
            watch = self._checked(
                self._libc.inotify_add_watch(
                    self._descriptor, os.fsencode(self._mount + folder), ctypes.c_uint32(_WANTED)
                )
            )
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            self.problem = f"{folder} and what is in it is not watched, only looked at: {error}"
            return True
        self._paths[watch] = folder
        self._watches[folder] = watch
        return True

    def _drop(self, folder: str) -> None:
        """Stop watching a folder that is gone.

        Other file systems end the watch by themselves, cgroupfs keeps it and the inode with it.
        """
        watch = self._watches.pop(folder, None)
        if watch is not None:
            self._paths.pop(watch, None)
            self._libc.inotify_rm_watch(self._descriptor, watch)  # fails where it has ended

    @staticmethod
    def _checked(answer: int) -> int:
        if answer < 0:
            number = ctypes.get_errno()
            hint = _HINTS.get(number, "")
            raise OSError(number, f"inotify: {os.strerror(number)}{hint}")
        return answer


def _parse(data: bytes) -> Iterator[tuple[int, int, str]]:
    offset = 0
    while offset < len(data):
        watch, mask, _cookie, length = _HEADER.unpack_from(data, offset)
        offset += _HEADER.size
        yield watch, mask, os.fsdecode(data[offset : offset + length].rstrip(b"\0"))
        offset += length
