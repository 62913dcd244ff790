"""Events of a cgroup tree: cgroups created, deleted, or with a cpuset written (inotify(7))."""

import errno
import os
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.file_access import list_folders
from numapin_enforcer.cgroups.naming import CgroupNaming
from numapin_enforcer.cgroups.nested.nesting import NestingLimits
from numapin_enforcer.cgroups.watch.instance import Inotify
from numapin_enforcer.cgroups.watch.raw_events import EventMask, parse_events

WATCHED_FILES: Final = frozenset(
    {"cpuset.cpus", "cpuset.mems", "cpuset.cpus.partition", "cpu.max", "cpu.cfs_quota_us"}
)
"""The files whose writes are reported; writes to other files of a cgroup are ignored.

A watch on a folder reports every file in it. The kernel itself reports a write wherever it notifies
poll(2), such as of `memory.events` and `cgroup.events`: up to 100 times a second for each cgroup at
its memory limit. A program that enters a cgroup writes `cgroup.procs`.
Source: kernfs_notify_workfn() in fs/kernfs/file.c; cgroup_file_notify() in kernel/cgroup/cgroup.c.
"""

_WATCHED_NAMES: Final = frozenset(map(os.fsencode, WATCHED_FILES))
_TOLERATED: Final = frozenset({errno.ENOSPC, errno.EACCES, errno.ENAMETOOLONG})
"""A folder that cannot be watched for one of these is only rescanned."""

MOST_READS: Final = 32
"""At most so many reads in one call. They hold more than a full queue has by default
(fs.inotify.max_queued_events, 16384); what is queued after that is left for the next call."""


_WANTED: Final = (
    EventMask.MODIFY
    | EventMask.CREATE
    | EventMask.DELETE
    | EventMask.MOVED_FROM
    | EventMask.MOVED_TO
    | EventMask.ONLYDIR
)


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened since the last read; paths are folders, relative to the mount, parents first.

    `overflowed`: the kernel dropped events, or the root of the tree was created or deleted. The
    whole tree must be read again.
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

    def __bool__(self) -> bool:
        return bool(self.appeared or self.vanished or self.written or self.overflowed)

    def frozen(self) -> Changes:
        return Changes(
            tuple(self.appeared), tuple(self.vanished), tuple(self.written), self.overflowed
        )


class CgroupWatch:
    """Watches one folder tree that may be created and deleted: `root`, relative to `mount`.

    An event says which cgroup to read again, not what has changed in it. A folder created before
    its parent is watched is found by listing the parent, so it may be reported twice, never missed.
    Without an inotify instance nothing is reported, and each `cover` tries to get one.

    Raises:
        OSError: this process cannot open more files.
        CgroupError: a folder could not be listed.
    """

    def __init__(self, mount: Path, root: str, naming: CgroupNaming | None = None) -> None:
        """Args: with `naming`, whose root is `root`, the limits of `nesting` hold."""
        self._limits = NestingLimits(naming)
        self._inotify = Inotify()
        self._mount, self._root, self._parent = f"{mount}/", root, root.rpartition("/")[0]
        self._paths: dict[int, str] = {}
        self._watches: dict[str, int] = {}
        self._batch = _Batch()
        """What happened since the last call of `read`, as far as the queue has been read."""
        self.was_empty = True
        """Whether the last `collect` found no event at all."""
        self.problem = ""
        """Why some folders are not watched; empty if all are."""
        with ExitStack() as on_failure:
            on_failure.callback(self.close)
            if self._open():
                self._add(self._parent)
                self._add_tree(root, _Batch())
            on_failure.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """The descriptor that is readable while events are queued."""
        return self._inotify.fileno()

    def close(self) -> None:
        """Stop watching."""
        self._inotify.close()

    def cover(self, paths: Iterable[str]) -> None:
        """Watch these folders, which a rescan found, and no others inside containers.

        So a pod with many of the latter gives those up that another one has a right to. No event
        reports folders that were created before their parent was watched. A watch that the kernel
        refused (fs.inotify.max_user_watches) is tried again; `problem` names the folder.
        """
        self.problem = ""
        if not self._open():
            return
        wanted = dict.fromkeys((self._parent, *paths))
        for path in self._watches.keys() - wanted.keys():
            if self._limits.is_nested(path):
                self._drop(path)
        for path in wanted:
            if path not in self._watches:
                self._add(path)

    def collect(self, most_reads: int = 1) -> bool:
        """Take events off the queue, and keep those that matter for the next call of `read`.

        Never waits. Events that say nothing of a cpuset are dropped here, so that they make the
        descriptor readable no longer.

        Returns:
            Whether the next `read` has something to report.
        """
        self.was_empty = True
        if not self._inotify.is_open:
            return False
        try:
            for _ in range(most_reads):
                data = self._inotify.read()
                self.was_empty = False
                self._take(data)
        except BlockingIOError:
            pass
        except (OSError, CgroupError):
            # The rest of what was read is lost. `read` lists the tree, and meets a lasting error.
            self._batch.overflowed = True
            self.was_empty = False
        return bool(self._batch)

    @property
    def collected(self) -> Changes:
        """What happened since the last `read`, as far as collected; the next one says it again."""
        return self._batch.frozen()

    def read(self) -> Changes:
        """What happened since the last read; never waits, and reads at most `MOST_READS` times."""
        self.collect(MOST_READS)
        batch, self._batch = self._batch, _Batch()
        if batch.overflowed:
            self._add_tree(self._root, batch)
            for path in self._watches.keys() - batch.appeared.keys() - {self._parent}:
                self._drop(path)
        return batch.frozen()

    def _open(self) -> bool:
        """Get an inotify instance; False, and a problem, if root has no more of them."""
        try:
            self._inotify.open()
        except OSError as error:
            self.problem = f"no cgroup is watched, all are only rescanned: {error}"
            return False
        return True

    def _take(self, data: bytes) -> None:
        for watch, mask, name in parse_events(data):
            if mask & EventMask.ISDIR:
                self._note_folder(watch, mask, os.fsdecode(name))
            elif mask & EventMask.MODIFY:
                if name in _WATCHED_NAMES:
                    self._note_write(watch)
            elif mask & EventMask.Q_OVERFLOW:
                self._batch.overflowed = True

    def _note_write(self, watch: int) -> None:
        folder = self._paths.get(watch)
        if folder is not None and folder != self._parent:
            self._batch.written[folder] = None

    def _note_folder(self, watch: int, mask: int, name: str) -> None:
        batch, above = self._batch, self._paths.get(watch)
        if above is None:
            return
        folder = f"{above}/{name}" if above else name
        if above == self._parent and folder != self._root:
            return
        batch.overflowed |= folder == self._root
        if mask & (EventMask.CREATE | EventMask.MOVED_TO):
            self._add_tree(folder, batch)
        elif folder in self._watches or not self._limits.is_nested(folder):
            self._drop(folder)
            batch.appeared.pop(folder, None)
            batch.vanished[folder] = None

    def _add_tree(self, folder: str, batch: _Batch) -> None:
        """Watch a folder and its descendants within the limits, and add them to `batch`."""
        pending = [folder]
        while pending:
            path = pending.pop()
            if not self._add(path):
                continue
            batch.appeared[path] = None
            batch.vanished.pop(path, None)
            with suppress(CgroupError):  # a read of the tree says what is wrong
                names = list_folders(self._mount + path, self._limits.most_children(path))
                pending += [f"{path}/{name}" for name in reversed(names)]

    def _add(self, folder: str) -> bool:
        """Watch one folder; False if it is gone, or only a rescan may report it."""
        is_new = folder not in self._watches and folder != self._parent
        if is_new and self._limits.refusal(folder):
            return False
        try:
            watch = self._inotify.add(self._mount + folder, _WANTED)
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno not in _TOLERATED:
                raise
            if error.errno == errno.ENOSPC:
                why = f"{folder} and its descendants are not watched, only rescanned: {error}"
                self.problem = why
            return folder == self._parent or not self._limits.is_nested(folder)
        if is_new:
            self._limits.add(folder)
        elif self._watches.get(folder, watch) != watch:
            self._end(self._watches[folder])  # the folder was made again, and its events were lost
        self._paths[watch] = folder
        self._watches[folder] = watch
        return True

    def _drop(self, folder: str) -> None:
        """Stop watching a folder that is deleted, or not read any more."""
        watch = self._watches.pop(folder, None)
        if watch is not None:
            self._limits.remove(folder)
            self._end(watch)

    def _end(self, watch: int) -> None:
        self._paths.pop(watch, None)
        self._inotify.remove(watch)
