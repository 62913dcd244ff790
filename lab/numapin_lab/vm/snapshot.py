"""A snapshot of a node just before its kubelet registers, kept in the cache and resumed by labs.

A kubelet that has registered with one API server never registers with another, so the node is saved
while the kubelet tries for the first time. Its certificates are signed by an authority that is
saved with the snapshot; a cluster that resumes the snapshot takes over that authority.
"""

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from numapin_lab.components.build import Say, say
from numapin_lab.components.catalog import cache_root
from numapin_lab.controlplane.certificates import LIFETIME, Authority
from numapin_lab.node.containerd import NAMESPACE, SEARCH_PATH
from numapin_lab.node.image import ALIASES, IMAGE, find_busybox
from numapin_lab.processes.daemons import kill, wait_until
from numapin_lab.processes.locks import locked
from numapin_lab.state import VM_NODE as NODE
from numapin_lab.vm.initramfs import initramfs
from numapin_lab.vm.kernel import Kernel, provide_kernel
from numapin_lab.vm.machine import find_qemu
from numapin_lab.vm.node_files import SOCKET, NodeFiles, certificates
from numapin_lab.vm.node_machine import MACHINE, NODE_INIT, NodeMachine, incoming, machine_options

START_SECONDS = 300.0
SAVE_SECONDS = 300.0
UNUSED_SECONDS = 7 * 24 * 3600.0
NOWHERE = 1  # a port without a listener
CTR = f"ctr --address={SOCKET} --namespace={NAMESPACE}"
# A log text of the kubelet. Source: kubernetes pkg/kubelet/kubelet_node_status.go.
LOOKING = "Unable to register node with API server"


@dataclass(frozen=True)
class Snapshot:
    """Files of a saved machine: memory, root disk, and the initramfs it booted from."""

    folder: Path
    kernel: Kernel

    @property
    def memory(self) -> Path:
        """The memory that QEMU saved. This file is written last."""
        return self.folder / "memory"

    @property
    def disk(self) -> Path:
        """The root: an ext4 image, read only."""
        return self.folder / "disk"

    @property
    def archive(self) -> Path:
        """The initramfs."""
        return self.folder / "initramfs"

    @property
    def authority(self) -> Authority:
        """The certificate authority that the node trusts."""
        return Authority(self.folder / "pki")

    def options(self, api_port: int, forwards: str) -> tuple[str, ...]:
        """QEMU's options for a machine that resumes it; see `machine_options`."""
        options = machine_options(self.kernel, self.archive, self.disk, api_port, forwards)
        return (*options, *incoming(self.memory))


def provide_snapshot(
    programs: Mapping[str, Path],
    environment: Mapping[str, str] = os.environ,
    progress: Say = say,
    systemd: bool = False,
) -> Snapshot:
    """Find a snapshot of the same programs, or make one (about 45 s).

    With `systemd`, that is the node's process 1 and the cgroup driver.

    Raises:
        MissingError: this machine lacks a program that is needed.
        LabError: the guest failed; the message has the end of its console.
    """
    cache = cache_root(environment) / "vm"
    kernel, files = provide_kernel(environment, progress), NodeFiles(programs, systemd)
    with locked(cache / "lock", lambda: progress("lab: waiting: another lab is making a snapshot")):
        snapshot = Snapshot(cache / _key(kernel, files), kernel)
        if not _fresh(snapshot.memory):
            started = time.monotonic()
            progress(f"lab: making a snapshot of a virtual node in {snapshot.folder}")
            _delete_unused(cache)
            _make(snapshot, files)
            progress(f"lab: made the snapshot in {time.monotonic() - started:.0f} s")
        os.utime(snapshot.folder)
    return snapshot


def _key(kernel: Kernel, files: NodeFiles) -> str:
    """A hash of everything that a snapshot is made from."""
    content = hashlib.sha256()
    for part in (*_texts(kernel, files), *files.written().values()):
        content.update(part.encode() + b"\0")
    for file in (kernel.image, *files.sources()):
        with file.open("rb") as opened:
            content.update(hashlib.file_digest(opened, "sha256").digest())
    return content.hexdigest()[:16]


def _texts(kernel: Kernel, files: NodeFiles) -> Iterator[str]:
    version = [str(find_qemu()), "--version"]
    yield subprocess.run(version, capture_output=True, text=True, check=True, timeout=60).stdout
    yield repr((MACHINE, NODE_INIT, NODE, kernel.modules, files.written().keys()))
    yield repr(machine_options(kernel, Path("archive"), Path("disk"), NOWHERE))


def _fresh(memory: Path) -> bool:
    """Whether the snapshot exists and is younger than half the lifetime of its certificates."""
    if not memory.exists():
        return False
    return time.time() - memory.stat().st_mtime < LIFETIME.total_seconds() / 2


def _delete_unused(cache: Path) -> None:
    for folder in cache.iterdir():
        if folder.is_dir() and time.time() - folder.stat().st_mtime > UNUSED_SECONDS:
            shutil.rmtree(folder)


def _make(snapshot: Snapshot, files: NodeFiles) -> None:
    shutil.rmtree(snapshot.folder, ignore_errors=True)
    snapshot.folder.mkdir(parents=True)
    certificates(snapshot.authority)
    files.write_disk(snapshot.disk, snapshot.authority)
    busybox = find_busybox(SEARCH_PATH)
    snapshot.archive.write_bytes(initramfs(snapshot.kernel, busybox, NODE_INIT))
    options = machine_options(snapshot.kernel, snapshot.archive, snapshot.disk, NOWHERE)
    with tempfile.TemporaryDirectory(prefix="numapin-vm-") as run:
        machine = NodeMachine(snapshot.folder / "making", Path(run), options)
        try:
            machine.start()
            machine.wait_booted()
            _start_node(machine)
            _save(machine, snapshot.memory)
        finally:
            pid = machine.daemon.pid()
            if pid is not None:
                kill(pid)


def _start_node(machine: NodeMachine) -> None:
    """Start the node, and stop the kubelet while it tries to reach its API server."""
    machine("start-containerd")
    answers = f"{CTR} version >/dev/null 2>&1"
    wait_until(lambda: machine.run_script(answers).status == 0, "containerd", START_SECONDS)
    machine(f"{CTR} images import /opt/image.tar", START_SECONDS)
    for alias in ALIASES:
        machine(f"{CTR} images tag {IMAGE} {alias}")
    # This run loads the shim and runc into memory, so that the first pod starts faster.
    machine(f"{CTR} run --rm {IMAGE} warm true", START_SECONDS)
    machine("start-kubelet")
    looks = f"grep -q {shlex.quote(LOOKING)} /run/kubelet.log"
    wait_until(lambda: machine.run_script(looks).status == 0, "the kubelet", START_SECONDS)
    machine("kill -STOP $(cat /run/kubelet.pid)")


def _save(machine: NodeMachine, memory: Path) -> None:
    partial = memory.with_suffix(".partial")
    machine.monitor("stop")
    machine.monitor("migrate-set-parameters", **{"max-bandwidth": 1 << 32})
    machine.monitor("migrate", uri=f"exec:cat >{shlex.quote(str(partial))}")
    state = "active"

    def ended() -> bool:
        nonlocal state
        state = machine.monitor("query-migrate")["status"]
        return state in {"completed", "failed", "cancelled"}

    wait_until(ended, "the snapshot to be written", SAVE_SECONDS, machine.daemon)
    if state != "completed":
        raise machine.daemon.failure(f"saving the snapshot {state}")
    partial.replace(memory)
