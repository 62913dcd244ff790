"""Events of the two upper levels alone: new pods, whatever the cgroups below them do."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.file_access import list_folders
from numapin_enforcer.cgroups.naming import CgroupNaming, Kind, Qos
from numapin_enforcer.cgroups.watch.instance import Inotify
from numapin_enforcer.cgroups.watch.raw_events import EventMask, parse_events

MOST_RECENT: Final = 64
"""Of so many of the newest pods a write to the cpuset is reported: their runtime sets them up."""

_FOLDERS: Final = (
    EventMask.CREATE
    | EventMask.DELETE
    | EventMask.MOVED_FROM
    | EventMask.MOVED_TO
    | EventMask.ONLYDIR
)


class NewPodWatch:
    """Watches `kubepods` and the QoS classes, which only the kubelet and systemd write.

    It has an inotify instance of its own: what tenants cause in their cgroups neither fills its
    queue nor takes time to read. So new pods can be fenced while other events must wait. Writes to
    the cpuset of a pod are reported by a watch on that file: a watch on the folder would report
    `memory.events` too, which a tenant can cause.

    Raises:
        OSError: this process cannot open more files.
    """

    def __init__(self, mount: Path, naming: CgroupNaming) -> None:
        self._mount, self._naming = mount, naming
        self._inotify = Inotify()
        self._folders: dict[int, str] = {}
        self._recent: dict[str, int] = {}
        """The newest pods, the oldest first, with the watch on their cpuset."""
        self._pods: dict[int, str] = {}
        self.problem = ""
        """Why new pods are not reported; empty if they are."""
        self._open()

    def fileno(self) -> int:
        """The descriptor that is readable while events are queued."""
        return self._inotify.fileno()

    def close(self) -> None:
        """Stop watching."""
        self._inotify.close()

    def take(self) -> tuple[str, ...]:
        """The pods that were made, or whose set was written, since the last call. Never waits.

        One that was made before its class was watched is reported as well. Paths are relative to
        the mount.
        """
        found: dict[str, None] = {}
        if not self._inotify.is_open:
            found.update(dict.fromkeys(self._open()))
        with suppress(OSError):
            for watch, mask, name in parse_events(self._inotify.read()):
                found.update(dict.fromkeys(self._pods_of(watch, mask, name)))
        return tuple(found)

    def _open(self) -> list[str]:
        """Get an instance and watch all folders with it; returns the pods in them."""
        try:
            self._inotify.open()
        except OSError as error:
            self.problem = f"new pods may be fenced late: {error}"
            return []
        self.problem = ""
        return list(self._watch_all())

    def _watch_all(self) -> Iterator[str]:
        for path in dict.fromkeys(map(self._naming.qos_path, Qos)):
            yield from self._watch(path)

    def _pods_of(self, watch: int, mask: int, name: bytes) -> Iterator[str]:
        """The pods that one event says something of."""
        if mask & EventMask.Q_OVERFLOW:
            yield from self._watch_all()
        elif watch in self._pods:
            yield self._pods[watch]
        elif watch in self._folders and mask & EventMask.ISDIR:
            path = f"{self._folders[watch]}/{name.decode(errors='surrogateescape')}"
            kind = self._naming.parse(path).kind
            if not mask & (EventMask.CREATE | EventMask.MOVED_TO):
                self._forget(path)
            elif kind is Kind.QOS:
                yield from self._watch(path)
            elif kind is Kind.POD:
                self._note(path)
                yield path

    def _watch(self, path: str) -> Iterator[str]:
        """Watch one of the folders; the pods in it."""
        folder = str(self._mount / path)
        try:
            number = self._inotify.add(folder, _FOLDERS)
        except FileNotFoundError:
            return
        except OSError as error:
            self.problem = f"new pods in {path} may be fenced late: {error}"
            return
        for before in [one for one, other in self._folders.items() if other == path]:
            if before != number:  # the folder was made again
                del self._folders[before]
                self._inotify.remove(before)
        self._folders[number] = path
        with suppress(CgroupError):
            for name in list_folders(folder):
                pod = f"{path}/{name}"
                if self._naming.parse(pod).kind is Kind.POD:
                    yield pod

    def _note(self, pod: str) -> None:
        """Have writes to a new pod's cpuset reported, and to that of the oldest no longer."""
        self._forget(pod)
        with suppress(OSError):
            watch = self._inotify.add(str(self._mount / pod / "cpuset.cpus"), EventMask.MODIFY)
            self._recent[pod], self._pods[watch] = watch, pod
        while len(self._recent) > MOST_RECENT:
            self._forget(next(iter(self._recent)))

    def _forget(self, pod: str) -> None:
        watch = self._recent.pop(pod, None)
        if watch is not None:
            self._pods.pop(watch, None)
            self._inotify.remove(watch)
