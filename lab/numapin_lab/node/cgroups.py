"""The cgroup of a lab, in every hierarchy of the machine; all of its pods are below it."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from numapin_lab.errors import LabError

REMOVE_SECONDS = 120.0
POLL_SECONDS = 0.05
MOUNTS = Path("/proc/self/mounts")


def hierarchies(mounts: str) -> list[Path]:
    """Where the cgroup file systems, v1 and v2, are mounted; `mounts` is text as in mtab(5).

    A hierarchy that is mounted twice is listed once; `cpu` and `cpuacct` may be one hierarchy.
    """
    found: dict[str, Path] = {}
    for line in mounts.splitlines():
        _, target, kind, options, *_ = line.split()
        if kind == "cgroup2":
            found.setdefault(kind, Path(target))
        elif kind == "cgroup":
            found.setdefault(options, Path(target))
    return list(found.values())


@dataclass(frozen=True)
class LabCgroup:
    """A cgroup of one name, directly below the root of each hierarchy."""

    name: str

    @property
    def path(self) -> str:
        """Its path as the kubelet and CRI write it."""
        return f"/{self.name}"

    def folders(self) -> list[Path]:
        """Its folder in each hierarchy, whether it exists or not."""
        return [root / self.name for root in hierarchies(MOUNTS.read_text())]

    def create(self) -> None:
        """Create it in every hierarchy where it does not exist."""
        self.create_empty()
        for folder in self.folders():
            open_to_children(folder)

    def create_empty(self) -> None:
        """Create it, so that a process can enter it.

        Once its children may use the controllers of cgroup v2, none can.
        """
        for folder in self.folders():
            folder.mkdir(exist_ok=True)
            fill_sets(folder)

    def processes(self) -> set[int]:
        """Every process in it and in its descendants."""
        return {
            int(pid)
            for folder in self.folders()
            for group in _bottom_up(folder)
            for pid in _read(group / "cgroup.procs").split()
        }

    def remove(self) -> None:
        """Kill every process in it, and remove it with its descendants.

        Raises:
            LabError: a process in it does not end.
        """
        deadline = time.monotonic() + REMOVE_SECONDS
        while groups := [group for folder in self.folders() for group in _bottom_up(folder)]:
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for group in groups:
                with contextlib.suppress(OSError):  # busy until its last process is gone: retried
                    group.rmdir()
            if time.monotonic() > deadline:
                raise LabError(
                    f"cgroup {groups[-1]} cannot be removed; processes in it: "
                    f"{sorted(self.processes()) or 'none'}"
                )
            time.sleep(POLL_SECONDS)


def below(folder: Path) -> Iterator[Path]:
    """A cgroup and all below it; without those that are removed during the search.

    The recursive searches of pathlib raise an error when a cgroup is removed under them.
    """
    return (Path(found) for found, _, _ in os.walk(folder))


def named(kubepods: Path, container_id: str) -> Path:
    """The cgroup of a container.

    Raises:
        LabError: there is none.
    """
    for folder in below(kubepods):
        if folder.name == container_id:
            return folder
    raise LabError(f"no cgroup below {kubepods} has the name {container_id}")


def open_to_children(folder: Path) -> None:
    """Let children use every controller: v1 cpusets start empty, v2 controllers start disabled.

    Source: cgroups(7), "Cgroups v2 subtree control"; cpuset(7).
    """
    fill_sets(folder)
    for group in (folder.parent, folder):
        offered = _read(group / "cgroup.controllers").split()
        if "cpuset" in offered:  # else v1 has the controllers, and this one only groups processes
            for controller in offered:
                (group / "cgroup.subtree_control").write_text(f"+{controller}")


def fill_sets(folder: Path) -> None:
    """Give a cpuset of v1 the CPUs and NUMA nodes of its parent, if it has none."""
    for name in ("cpuset.mems", "cpuset.cpus"):
        file = folder / name
        if file.exists() and (folder.parent / "tasks").exists() and not file.read_text().strip():
            file.write_text((folder.parent / name).read_text())


def _bottom_up(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        for parent, _, _ in os.walk(folder, topdown=False):
            yield Path(parent)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # removed between listing and reading
        return ""
