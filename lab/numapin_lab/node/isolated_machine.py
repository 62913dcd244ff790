"""Namespaces in which kubelet and containerd find a machine of their own.

Programs that run as pods see the node through host paths. Here these paths show the lab, and only
it: the root of the cgroups is the lab's cgroup, /run is empty but for containerd's folder,
/var/lib/kubelet and /var/lib/numapin are folders of the lab, and the network has no interface but
loopback and the bridge of the pods. So manifests that are written for any node run unchanged, and
leave nothing on the machine.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from numapin_lab.node import mounts
from numapin_lab.node.cgroups import MOUNTS, LabCgroup, hierarchies
from numapin_lab.node.mount_namespace import MountNamespace, run_command

# A cgroup namespace has the cgroups of its creator as roots. Source: cgroup_namespaces(7).
JOIN = """set -eu
name=$1; shift
while [ "$1" != -- ]; do echo $$ >"$1/$name/cgroup.procs"; shift; done
shift
exec "$@"
"""

FUNCTIONS = """
own_run() {
  run=$1 place=$1/machine/run
  mkdir "$place"
  mount -t tmpfs -o mode=755 numapin-lab "$place"
  mkdir "$place/containerd" "$place/${run##*/}"
  mount --bind "$run/containerd" "$place/containerd"
  mount --bind "$run" "$place/${run##*/}"
  mount --no-mtab --move "$place" /run
}
own_cgroups() {
  place=$1/machine/cgroup name=$2; shift 2
  mkdir "$place"
  for hierarchy in "$@"; do
    mount --no-mtab --bind "$hierarchy/$name" "$place"
    umount --no-mtab --lazy "$hierarchy"
    mount --no-mtab --move "$place" "$hierarchy"
  done
}
own_network() {
  busybox=$1; shift
  "$busybox" ip link set lo up
  for address in "$@"; do "$busybox" ip address add "$address/32" dev lo; done
}
"""


@dataclass(frozen=True)
class IsolatedMachine(MountNamespace):
    """The namespaces, held by files in `run`.

    `cgroup` is the root of the cgroups in it. `kubelet` is its /var/lib/kubelet. `addresses` are
    on its loopback: its own one, and those that clients in it connect to.
    """

    cgroup: LabCgroup
    kubelet: Path
    busybox: Path
    addresses: tuple[str, ...]

    @property
    def network(self) -> Path:
        """The file that holds the network namespace."""
        return self.run / "net"

    @property
    def cgroups(self) -> Path:
        """The file that holds the cgroup namespace."""
        return self.run / "cgroup"

    def inside(self, command: Sequence[str]) -> tuple[str, ...]:
        """The command that runs `command` in the namespaces, in the same process."""
        return ("nsenter", f"--mount={self.file}", *self._others, "--", *command)

    @property
    def _others(self) -> tuple[str, str]:
        """Options of nsenter and unshare, which name the files of the other namespaces."""
        return (f"--cgroup={self.cgroups}", f"--net={self.network}")

    def create(self) -> None:
        """Create them if they do not exist.

        Raises:
            LabError: the kernel refuses; the message says which command.
        """
        if mounts.below(MOUNTS.read_text(), (self.file,)):
            return
        self.cgroup.create_empty()
        self.kubelet.mkdir(parents=True, exist_ok=True)
        (self.run / "containerd").mkdir(exist_ok=True)
        super().create()

    def _creation(self, script: str) -> tuple[str, ...]:
        for file in (self.cgroups, self.network):
            file.touch()
        join = ("sh", "-c", JOIN, "sh", self.cgroup.name, *_hierarchies(), "--")
        run_command(*join, "unshare", *self._others, "true")
        return ("nsenter", *self._others, "--", *super()._creation(script + self._script()))

    def _script(self) -> str:
        """What makes the namespaces look like a machine, after what every lab does in its own."""
        steps = (
            ("own_run", str(self.run)),
            ("own_cgroups", str(self.run), self.cgroup.name, *_hierarchies()),
            ("own_network", str(self.busybox), *self.addresses),
            ("mount", "--no-mtab", "--bind", str(self.kubelet), "/var/lib/kubelet"),
        )
        return FUNCTIONS + "\n".join(map(shlex.join, steps)) + "\n"


def _hierarchies() -> list[str]:
    return list(map(str, hierarchies(MOUNTS.read_text())))
