"""Builds the initramfs that a virtual machine boots from.

It mounts the root read-only under a tmpfs overlay, so that programs can write anywhere and no file
of the root changes. It also mounts cgroup v2 with every controller.
"""

import gzip
import lzma
import shlex
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from numapin_lab.vm.kernel import Kernel, module_files

MODULES = ("9p", "9pnet_virtio", "virtio_pci", "overlay", "virtio_net")
DISK_MODULES = ("virtio_blk", "crc32c_generic", "ext4")
FOLDERS = ("bin", "dev", "lower", "modules", "newroot", "proc", "rw", "sys")
CONSOLE, OUTPUT, STATUS = "ttyS1", "ttyS0", "ttyS2"

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
for module in $(cat /modules/order); do insmod /modules/$module; done
{root}
mount -t tmpfs -o mode=755 rw /rw; mkdir /rw/upper /rw/work
mount -t overlay -o lowerdir=/lower,upperdir=/rw/upper,workdir=/rw/work root /newroot
cd /newroot
mkdir -p proc sys dev run tmp
mount --move /proc proc; mount --move /sys sys; mount --move /dev dev
mkdir -p dev/shm dev/pts
mount -t tmpfs -o mode=1777 shm dev/shm; mount -t devpts pts dev/pts
mount -t tmpfs -o mode=755 run run
mount -t cgroup2 cgroup2 sys/fs/cgroup
for controller in $(cat sys/fs/cgroup/cgroup.controllers); do
  echo +$controller >sys/fs/cgroup/cgroup.subtree_control
done
# QEMU's own network: the host's loopback is 10.0.2.2. Source: QEMU, "Using the user mode network".
ip link set lo up; ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0; ip route add default via 10.0.2.2
hostname vm
{last}
"""

COMMAND = """{exports}
cd {folder}
{command} </dev/null >/dev/{output} 2>&1
echo $? >/dev/{status}
echo o >/proc/sysrq-trigger
sleep 60
"""


@dataclass(frozen=True)
class Init:
    """The variable parts of the init script.

    `root`: shell commands that mount the machine's files on /lower. `last`: shell commands that run
    in /newroot after everything is mounted. `modules`: the kernel modules that both need.
    """

    root: str
    last: str
    modules: tuple[str, ...] = MODULES


def mount_host(folder: str) -> str:
    """A shell command that mounts the host's files read-only."""
    options = "ro,trans=virtio,version=9p2000.L,msize=262144,cache=loose"
    return f"mount -t 9p -o {options} root {folder}"


RUN_COMMAND = Init(
    mount_host("/lower"),
    f"stty -F dev/{OUTPUT} raw\n"
    "cp /command run/command\n"
    "exec switch_root /newroot /bin/sh /run/command",
)


def initramfs(
    kernel: Kernel, busybox: Path, init: Init, files: Mapping[str, bytes] | None = None
) -> bytes:
    """The compressed archive; `files` are added to its root folder."""
    order = module_files((kernel.modules / "modules.dep").read_text(), init.modules)
    script = INIT.format(root=init.root, last=init.last)
    content = {
        "bin/busybox": (busybox.read_bytes(), 0o755),
        "init": (script.encode(), 0o755),
        "modules/order": ("\n".join(_plain(file) for file in order).encode(), 0o644),
    }
    content |= {
        f"modules/{_plain(file)}": (unpacked_module(kernel.modules / file), 0o644) for file in order
    }
    content |= {name: (text, 0o755) for name, text in (files or {}).items()}
    return gzip.compress(cpio(FOLDERS, content), compresslevel=1, mtime=0)


def _plain(file: str) -> str:
    return Path(file).name.removesuffix(".xz")


def unpacked_module(file: Path) -> bytes:
    """A module as busybox can load it."""
    content = file.read_bytes()
    return lzma.decompress(content) if file.suffix == ".xz" else content


def command_script(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    """Run `command` in `folder`, its output to one serial line, its status to another."""
    exports = "\n".join(
        f"export {name}={shlex.quote(value)}" for name, value in environment.items()
    )
    return COMMAND.format(
        exports=exports,
        folder=shlex.quote(str(folder)),
        command=shlex.join(command),
        output=OUTPUT,
        status=STATUS,
    )


def cpio(folders: Sequence[str], files: Mapping[str, tuple[bytes, int]]) -> bytes:
    """An archive of folders and files (content, mode).

    Source: Linux, Documentation/driver-api/early-userspace/buffer-format.rst, "newc".
    """
    parts = [_entry(name, b"", stat.S_IFDIR | 0o755) for name in folders]
    parts += [_entry(name, content, stat.S_IFREG | mode) for name, (content, mode) in files.items()]
    return b"".join(parts) + _entry("TRAILER!!!", b"", 0)


def _entry(name: str, content: bytes, mode: int) -> bytes:
    path = name.encode() + b"\0"
    inode = uid = gid = mtime = device = check = 0
    numbers = (inode, mode, uid, gid, 1, mtime, len(content), device, device, device, device)
    header = b"070701" + b"".join(b"%08x" % number for number in (*numbers, len(path), check))
    return _padded(header + path) + _padded(content)


def _padded(block: bytes) -> bytes:
    return block + bytes(-len(block) % 4)
