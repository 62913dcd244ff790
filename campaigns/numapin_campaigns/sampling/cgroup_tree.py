"""Read a tree of cgroups a thousand times a second, with files that stay open."""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from numapin_api.cpuset import CpuSet

EFFECTIVE: Final = {1: "cpuset.effective_cpus", 2: "cpuset.cpus.effective"}
ID_LENGTH: Final = 64
"""Of the ids of containers and sandboxes, which name their cgroups. Source: containerd."""

UNREAD: Final = "numapin-lab-unread"
"""A cgroup of this name, and what is in it, is not read: no process is ever in it."""

NAME: Final = "io.kubernetes.cri.container-name"
"""Annotation of a container's bundle; a sandbox has none. Source: containerd, CRI plug-in."""


@dataclass(slots=True)
class Leaf:
    """A cgroup below that of a pod: a container, a sandbox, or one created inside of them.

    Attributes:
        path: below the root, e.g. `besteffort/pod<uid>/<id>`.
        seen_at: when it was first seen, monotonic seconds.
        pod_uid: the UID in the pod's folder.
        container: its name; empty for a sandbox, None until the runtime has written its bundle.
        set_file: descriptor of its effective set.
    """

    path: str
    seen_at: float
    pod_uid: str
    set_file: int
    container: str | None = None

    def is_within(self, other: "Leaf") -> bool:
        """Whether this cgroup is the other one, or lies in it."""
        return f"{self.path}/".startswith(f"{other.path}/")


@dataclass(slots=True)
class _Folder:
    links: int = -1
    children: dict[str, None] = field(default_factory=dict)


def container_cgroups(root: Path) -> Iterator[Path]:
    """Each cgroup of a container or sandbox below `root`, as a folder.

    One that is removed during the search may be left out.
    """
    for folder, inside, _ in os.walk(root):
        path = Path(folder)
        if len(path.name) == ID_LENGTH and path.parent.name.startswith("pod"):
            inside.clear()  # there may be thousands
            yield path


class PodsTree:
    """Every leaf below a `kubepods` folder.

    A folder is listed again when its number of links has changed, which is its number of children
    in cgroup file systems, and at intervals in any case: one child may have replaced another.
    """

    def __init__(self, root: Path, bundles: Path) -> None:
        """Read nothing yet.

        Args:
            root: the kubepods folder in the hierarchy that has cpusets.
            bundles: where the runtime has a folder with config.json for each container.
        """
        self._root, self._bundles = str(root), bundles
        version = 2 if (root / "cgroup.controllers").exists() else 1
        self._file = EFFECTIVE[version]
        self._folders: dict[str, _Folder] = {"": _Folder()}
        self.leaves: dict[str, Leaf] = {}
        self._sets: dict[bytes, int] = {}

    def refresh(self, now: float, *, everything: bool) -> None:
        """Find cgroups that were created or removed."""
        for path in list(self._folders):
            folder = self._folders.get(path)
            if folder is None:
                continue
            try:
                links = os.stat(self._path(path)).st_nlink  # noqa: PTH116 (a thousand times a second)
                if everything or links != folder.links:
                    self._list(path, folder, now)
                    folder.links = links
            except FileNotFoundError:
                self._drop(path)

    def cpus(self, leaf: Leaf) -> int:
        """The effective set as a bit mask; 0 when the cgroup is gone."""
        text = _read(leaf.set_file)
        known = self._sets.get(text)
        if known is None:
            known = self._sets[text] = CpuSet.parse(text.decode("ascii").strip()).mask
        return known

    def runs(self, leaf: Leaf) -> bool:
        """Whether a task is in the cgroup."""
        return bool(self._processes(leaf))

    def pids(self, leaf: Leaf) -> list[int]:
        """The processes in the cgroup."""
        return [int(pid) for pid in self._processes(leaf).split()]

    def has_started(self, leaf: Leaf) -> bool:
        """Whether a process other than the runtime's own, which sets the container up, is in it.

        Until that process becomes the container's program, it is runc or an unnamed copy of runc.
        Source: runc libcontainer/dmz, "runc_cloned".
        """
        for pid in self.pids(leaf):
            with suppress(OSError):  # it ended
                if "runc" not in str(Path(f"/proc/{pid}/exe").readlink()):
                    return True
        return False

    def _processes(self, leaf: Leaf) -> bytes:
        """The content of cgroup.procs.

        Opened again each time: with v1 an open file repeats its first content.
        Source: kernel/cgroup/cgroup-v1.c, cgroup_pidlist_start.
        """
        try:
            file = os.open(f"{self._root}/{leaf.path}/cgroup.procs", os.O_RDONLY)
        except OSError:
            return b""
        found = _read(file)
        os.close(file)
        return found

    def container(self, leaf: Leaf) -> str | None:
        """The name of its container; empty for a sandbox, None while it is unknown."""
        if leaf.container is None:
            leaf.container = read_name(self._bundles, Path(leaf.path).name)
        return leaf.container

    def _path(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _list(self, path: str, folder: _Folder, now: float) -> None:
        entries = os.scandir(self._path(path))
        names = {one.name: None for one in entries if one.is_dir() and one.name != UNREAD}
        for name in folder.children.keys() - names.keys():
            self._drop(f"{path}/{name}" if path else name)
        for name in names.keys() - folder.children.keys():
            self._add(f"{path}/{name}" if path else name, now)
        folder.children = names

    def _add(self, path: str, now: float) -> None:
        self._folders[path] = folder = _Folder()
        uids = [part[3:] for part in path.split("/") if part.startswith("pod")]
        if uids and not path.endswith(f"pod{uids[0]}"):
            try:
                set_file = os.open(f"{self._path(path)}/{self._file}", os.O_RDONLY)
            except OSError:
                self._folders.pop(path, None)
                return
            self.leaves[path] = Leaf(path, now, uids[0], set_file)
        try:
            self._list(path, folder, now)
        except FileNotFoundError:
            self._drop(path)

    def _drop(self, path: str) -> None:
        for name in list(self._below(path)):
            self._folders.pop(name, None)
            leaf = self.leaves.pop(name, None)
            if leaf is not None:
                os.close(leaf.set_file)

    def _below(self, path: str) -> Iterator[str]:
        yield path
        yield from (one for one in self._folders if one.startswith(f"{path}/"))


def read_name(bundles: Path, container_id: str) -> str | None:
    """The name of a container by its id; empty for a sandbox, None without a bundle."""
    try:
        config = json.loads((bundles / container_id / "config.json").read_bytes())
    except (OSError, ValueError):  # not written yet, or gone
        return None
    return str(config.get("annotations", {}).get(NAME, ""))


def _read(file: int) -> bytes:
    try:
        return os.pread(file, 4096, 0)
    except OSError:  # ENODEV: the cgroup is gone
        return b""
