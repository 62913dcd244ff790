"""What a lab has left on the machine after `down`: an empty list, if everything was removed."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from numapin_lab.cleanup import in_memory
from numapin_lab.node import mounts
from numapin_lab.node.cgroups import LabCgroup
from numapin_lab.node.pod_network import BRIDGE
from numapin_lab.processes.daemons import marked
from numapin_lab.state import LabState

PROC = Path("/proc")
INTERFACES = Path("/sys/class/net")
KINDS = ("cgroup", "mnt", "net")
# Where the host paths of the manifests lead on a node, and what kubelet, containerd and CNI make.
HOST_PATHS = (
    *("/run/cdi", "/run/containerd", "/run/dbus", "/run/netns", "/run/numapin"),
    *("/var/lib/cni", "/var/lib/kubelet", "/var/lib/numapin"),
    *("/var/log/containers", "/var/log/pods"),
)


def host_paths() -> frozenset[str]:
    """The folders of a node that this machine has itself; taken before a lab is brought up."""
    return frozenset(path for path in HOST_PATHS if os.path.lexists(path))


@dataclass(frozen=True)
class Traces:
    """By what a lab would be seen on the machine. `before` are the `host_paths` before it was up.

    `namespaces` are the identities of the namespaces that its node has.
    """

    folder: Path
    state: LabState
    before: frozenset[str]
    namespaces: frozenset[str]

    @classmethod
    def of(cls, folder: Path, state: LabState, before: frozenset[str]) -> "Traces":
        """The traces of a lab that is up."""
        files = (state.run / kind for kind in KINDS)
        found = (f"{file.name}:[{file.stat().st_ino}]" for file in files if file.exists())
        return cls(folder, state, before, frozenset(found))

    def left(self) -> list[str]:
        """Everything of the lab that is still there but its logs, a line for each."""
        return [
            *(f"process {pid}: {_command(pid)}" for pid in marked(self.folder)),
            *(f"cgroup {path}" for path in LabCgroup(self.state.name).folders() if path.exists()),
            *self._in_namespaces(),
            *(f"network interface {BRIDGE}" for path in [INTERFACES / BRIDGE] if path.exists()),
            *(f"file {path}" for path in self._files()),
        ]

    def _in_namespaces(self) -> Iterator[str]:
        """Mounts in every mount namespace of the machine; processes in those of the node."""
        seen = set()
        for process in PROC.glob("[0-9]*"):
            for kind in KINDS:
                try:
                    name = str((process / "ns" / kind).readlink())
                    table = (process / "mounts").read_text() if kind == "mnt" else ""
                except OSError:  # it has ended
                    continue
                if name in self.namespaces:
                    yield f"process {process.name} in namespace {name}"
                if name not in seen:
                    places = (self.folder, self.state.run)
                    yield from (f"mount {at} in {name}" for at in mounts.below(table, places))
                seen.add(name)

    def _files(self) -> Iterator[Path]:
        yield from (one for one in (self.state.run, in_memory(self.state.run)) if one.exists())
        yield from (one for one in _below(self.folder) if one.name not in {"log", "lock"})
        yield from map(Path, sorted(host_paths() - self.before))


def _below(folder: Path) -> Iterator[Path]:
    """All but the folders. A folder may go while it is read, as those of a runtime do."""
    for parent, folders, files in os.walk(folder):
        links = (one for one in folders if Path(parent, one).is_symlink())
        yield from (Path(parent, one) for one in (*files, *links))


def _command(pid: int) -> str:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return "has just ended"
