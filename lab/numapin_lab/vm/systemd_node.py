"""A node whose process 1 is systemd, with containerd and kubelet as its services.

All cgroups are systemd's, and the cgroup driver of containerd and kubelet is `systemd`. Programs,
libraries and the bus's rules are this machine's.
"""

from collections.abc import Iterator
from pathlib import Path

from numapin_lab.errors import MissingError
from numapin_lab.vm.guest_shell import LINE, PULSE_LINE, SHELL
from numapin_lab.vm.systemd import BUS_UNITS, PROGRAM, START

REMEDY = "apt-get install -y --no-install-recommends systemd dbus"
PROGRAMS = (PROGRAM, "/usr/bin/systemctl", "/usr/bin/busctl", "/usr/bin/dbus-daemon")
RULES = (
    "/usr/share/dbus-1/system.conf",
    "/usr/share/dbus-1/system.d/org.freedesktop.systemd1.conf",
)
DRIVER = {"cgroupDriver": "systemd"}
TARGET = "numapin-node.target"

# systemd mounts cgroup v2 itself, with the options that it has on other machines.
FIRST_PROCESS = f"""#!/bin/sh
umount /sys/fs/cgroup
{START} --unit={TARGET}
"""
TARGET_UNIT = f"""[Unit]
DefaultDependencies=no
Requires=dbus.socket dbus.service
Wants=shell@{LINE}.service shell@{PULSE_LINE}.service
"""
SHELL_UNIT = """[Unit]
DefaultDependencies=no
After=dbus.service
[Service]
Slice=system.slice
Environment=PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
LimitNOFILE=65536
ExecStartPre=/bin/stty -F /dev/%i raw -echo
ExecStart=/sbin/shell %i
Restart=always
KillMode=process
"""
# Source: containerd.service of containerd.
CONTAINERD_UNIT = """[Unit]
DefaultDependencies=no
After=dbus.service
[Service]
Type=notify
TimeoutStartSec=infinity
Environment=PATH=/usr/sbin:/usr/bin:/sbin:/bin
ExecStart=/usr/bin/containerd --config=/etc/containerd.toml
ExecStartPost=/bin/sh -c 'echo $MAINPID >/run/containerd.pid'
StandardOutput=append:/run/containerd.log
StandardError=append:/run/containerd.log
Delegate=yes
KillMode=process
LimitNOFILE=infinity
TasksMax=infinity
"""
KUBELET_UNIT = """[Unit]
DefaultDependencies=no
After=dbus.service
[Service]
Environment=PATH=/usr/sbin:/usr/bin:/sbin:/bin
ExecStart=/usr/bin/{command}
ExecStartPost=/bin/sh -c 'echo $MAINPID >/run/kubelet.pid'
StandardOutput=append:/run/kubelet.log
StandardError=append:/run/kubelet.log
TimeoutStopSec=30
"""


def sources() -> Iterator[Path]:
    """The programs and rules that are copied from this machine.

    Raises:
        MissingError: this machine lacks one.
    """
    for path in map(Path, (*PROGRAMS, *RULES)):
        if not path.exists():
            raise MissingError(f"a node with systemd needs {path}", REMEDY)
        yield path


def written(prepare: str, kubelet: str) -> dict[str, str]:
    """The files that are written, by path, instead of those of a node without systemd.

    Args:
        prepare: a shell command that must run before containerd.
        kubelet: the kubelet's command line.
    """
    units = {
        **BUS_UNITS,
        TARGET: TARGET_UNIT,
        "shell@.service": SHELL_UNIT,
        "containerd.service": CONTAINERD_UNIT,
        "kubelet.service": KUBELET_UNIT.format(command=kubelet),
    }
    return {
        **{f"etc/systemd/system/{name}": text for name, text in units.items()},
        "etc/passwd": "root:x:0:0::/root:/bin/sh\nmessagebus:x:100:100::/:/bin/false\n",
        "etc/group": "root:x:0:\nmessagebus:x:100:\n",
        "sbin/agent": FIRST_PROCESS,
        "sbin/shell": SHELL,
        "sbin/start-containerd": f"#!/bin/sh\n{prepare} && systemctl start containerd\n",
        "sbin/start-kubelet": "#!/bin/sh\nsystemctl restart kubelet\n",
        "sbin/stop-kubelet": "#!/bin/sh\nsystemctl stop kubelet\n",
    }
