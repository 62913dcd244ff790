"""Events of cgroups beside the kubelet's: made, or with a set written (inotify(7))."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from numapin_enforcer.cgroups.watch.instance import Inotify
from numapin_enforcer.cgroups.watch.raw_events import EventMask
from numapin_enforcer.host.files import ASKED

_MOST_READS: Final = 32

_FOLDERS: Final = EventMask.CREATE | EventMask.MOVED_TO | EventMask.ONLYDIR


class HostWatch:
    """One inotify instance. What it cannot watch is found by a resync.

    The set is watched, and not its folder: `memory.events` and `cgroup.events` are written often.
    """

    def __init__(self, mount: Path) -> None:
        self._mount = mount
        self._inotify = Inotify()
        self._watches: dict[str, int] = {}

    def fileno(self) -> int:
        """The descriptor that is readable while events are queued."""
        return self._inotify.fileno()

    def close(self) -> None:
        """Stop watching."""
        self._inotify.close()

    def cover(self, folders: Iterable[str], cgroups: Iterable[str]) -> None:
        """Watch these folders for new cgroups, and the sets of these cgroups.

        A cgroup that was made again needs a new watch, and one that is watched keeps it.
        """
        with suppress(OSError):
            self._inotify.open()
        if not self._inotify.is_open:
            return
        wanted = {str(self._mount / path): _FOLDERS for path in folders}
        wanted |= {str(self._mount / path / ASKED): EventMask.MODIFY for path in cgroups}
        now: dict[str, int] = {}
        for path, mask in wanted.items():
            with suppress(OSError):
                now[path] = self._inotify.add(path, mask)
        for watch in set(self._watches.values()).difference(now.values()):
            self._inotify.remove(watch)
        self._watches = now

    def drain(self) -> None:
        """Take all events off the queue: whatever they say, everything is read."""
        with suppress(OSError):
            for _ in range(_MOST_READS):
                self._inotify.read()
