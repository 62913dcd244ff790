"""A mount namespace for kubelet and containerd, so that they change nothing of the machine.

Some of their folders cannot be configured (DevicePluginPath and ContainerLogsDir of the kubelet,
the cache of libcni), and the kubelet sets kernel settings of the whole machine. In the namespace
those folders are empty ones of the lab, and those settings already have the values that the kubelet
wants, so that it writes none. Every mount they create stays in the namespace, and is removed when
the last process and the file of the namespace are gone.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from numapin_lab.errors import LabError
from numapin_lab.node import mounts

MOUNT_SECONDS = 240

# Source: kubernetes pkg/kubelet/cm/container_manager_linux.go, setupKernelTunables.
WANTED_SETTINGS: Mapping[str, str] = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}

# How unshare says that the kernel refuses to mount a namespace.
REFUSED = "unshare: "

# The machine may lack /var/lib/kubelet, and a mount point created there would remain. So the whole
# parent is covered, and its content is mounted again beside the new folders.
SCRIPT = """set -eu
cover() {
  parent=$1 place=$2; shift 2
  mkdir -p "$place/machine" "$place/own"
  mount --rbind "$parent" "$place/machine"
  mount -t tmpfs -o mode=755 numapin-lab "$parent"
  for name in "$@"; do
    mkdir "$parent/$name" "$place/own/$name"
    mount --bind "$place/own/$name" "$parent/$name"
  done
  for found in "$place/machine"/* "$place/machine"/.[!.]*; do
    target=$parent/${found##*/}
    if [ -e "$target" ] && ! [ -L "$found" ]; then continue
    elif [ -L "$found" ]; then cp -P "$found" "$target"
    elif [ -d "$found" ]; then mkdir "$target"; mount --rbind "$found" "$target"
    elif [ -f "$found" ]; then : >"$target"; mount --bind "$found" "$target"
    fi
  done
}
cover /var/lib "$1/var-lib" kubelet cni numapin
cover /var/log "$1/var-log" containers
cd "$1/settings"
find . -type f | while read -r setting; do
  if [ -e "/proc/sys/$setting" ]; then mount --bind "$setting" "/proc/sys/$setting"; fi
done
"""


@dataclass(frozen=True)
class MountNamespace:
    """The namespace, held by a file in `run`, a folder that exists while the lab is up."""

    run: Path

    @property
    def file(self) -> Path:
        """The file that holds the namespace, like /proc/PID/ns/mnt."""
        return self.run / "mnt"

    @property
    def covers(self) -> Path:
        """The folders of the lab that replace those of the machine in the namespace."""
        return self.run / "machine"

    def inside(self, command: Sequence[str]) -> tuple[str, ...]:
        """The command that runs `command` in the namespace, in the same process."""
        return ("nsenter", f"--mount={self.file}", "--", *command)

    def run_inside(self, *command: str) -> None:
        """Run a command in the namespace.

        Raises:
            LabError: it failed; the message is its standard error.
        """
        run_command(*self.inside(command))

    def create(self) -> None:
        """Create it if it does not exist.

        Raises:
            LabError: the kernel refuses; the message says which command.
        """
        if mounts.below(mounts.MOUNTS.read_text(), (self.file,)):
            return
        for name, value in WANTED_SETTINGS.items():
            setting = self.covers / "settings" / name
            setting.parent.mkdir(parents=True, exist_ok=True)
            setting.write_text(value + "\n")
        self.file.touch()
        # A namespace can only be held by a file on a private mount.
        run_command("mount", "--bind", str(self.run), str(self.run))
        run_command("mount", "--make-private", str(self.run))
        _run_on_some_cpu(*self._creation(SCRIPT))

    def _creation(self, script: str) -> tuple[str, ...]:
        """The command that creates the namespace, and runs `script` in it."""
        options = (f"--mount={self.file}", "--propagation=slave")
        return ("unshare", *options, "sh", "-c", script, "sh", str(self.covers))


def _run_on_some_cpu(*command: str) -> None:
    """Run a command that mounts a mount namespace; on each CPU in turn until one succeeds.

    The kernel refuses to mount a namespace that is older than the present one (mnt_ns_loop in
    fs/namespace.c). It compares numbers, which each CPU takes from a range of its own (seen on
    Linux 6.18): within a mount namespace, a new one can look older on another CPU.
    """
    *others, last = sorted(os.sched_getaffinity(0))
    for cpu in others:
        try:
            return run_command("taskset", "--cpu-list", str(cpu), *command)
        except LabError as error:
            if REFUSED not in str(error):  # the script has begun: it cannot run twice
                raise
    return run_command("taskset", "--cpu-list", str(last), *command)


def run_command(*command: str) -> None:
    """Run a command.

    Raises:
        LabError: it failed; the message is its standard error.
    """
    answer = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=MOUNT_SECONDS,
        stdin=subprocess.DEVNULL,
    )
    if answer.returncode != 0:
        raise LabError(f"{' '.join(command[:3])}: {answer.stderr.strip()}")
