"""A virtual machine that keeps running with a node's root: QEMU options, monitor and shell."""

import base64
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from numapin_lab.controlplane.servers import GUEST_PORT, GUEST_SERVER
from numapin_lab.errors import LabError
from numapin_lab.processes.daemons import Daemon, wait_until
from numapin_lab.vm.guest_shell import COMMAND_SECONDS, Answer, GuestShell
from numapin_lab.vm.initramfs import DISK_MODULES, MODULES, Init
from numapin_lab.vm.kernel import Kernel
from numapin_lab.vm.machine import Machine, find_qemu, hardware
from numapin_lab.vm.qemu_monitor import Monitor

CONSOLE = "ttyS0"
# The kernel finds 1 GiB in one piece only at boot. Pages of 2 MiB can be added later. CPU 7 is like
# any other for policies that do not ask for isolated CPUs.
MACHINE = Machine(memory_mib=5120, append="hugepagesz=1G hugepages=0:1,1:1 isolcpus=7")
BESIDE_BUS = 64
BOOT_SECONDS = 300.0
PING_SECONDS, MAX_PING_SECONDS = 2.0, 32.0
LOAD_SECONDS = 300.0
NODE_INIT = Init(
    "mount -t ext4 -o ro /dev/vda /lower",
    "exec switch_root /newroot /sbin/agent",
    (*MODULES, *DISK_MODULES),
)


@dataclass(frozen=True)
class NodeMachine:
    """One machine. `run` is the folder of its sockets, a short path; `options` are QEMU's.

    The output of its console is in the daemon's log.
    """

    folder: Path
    run: Path
    options: tuple[str, ...]
    ports: tuple[int, ...] = ()

    @property
    def daemon(self) -> Daemon:
        """The QEMU process."""
        lines = [
            *("-serial", "stdio"),
            *("-serial", f"unix:{self.run / 'shell.sock'},server=on,wait=off"),
            *("-serial", f"unix:{self.run / 'pulse.sock'},server=on,wait=off"),
            *("-qmp", f"unix:{self.run / 'monitor.sock'},server=on,wait=off"),
        ]
        command = (str(find_qemu()), *lines, *self.options)
        return Daemon("vm", self.folder, command, self.folder.parent, ports=self.ports)

    @property
    def monitor(self) -> Monitor:
        """Stops, saves and resumes the machine."""
        return Monitor(self.run / "monitor.sock")

    @property
    def shell(self) -> GuestShell:
        """Runs commands in the machine."""
        return GuestShell(self.run / "shell.sock")

    @property
    def pulse(self) -> GuestShell:
        """Runs commands beside those of `shell`, to see whether the machine lives."""
        return GuestShell(self.run / "pulse.sock")

    def run_script(self, script: str, timeout_seconds: float = COMMAND_SECONDS) -> Answer:
        """Run a shell script in it, as root.

        Raises:
            LabError: the machine stopped, or did not answer in time; the message has the end of
                the console.
        """
        try:
            return self.shell.run(script, timeout_seconds)
        except OSError as error:
            raise self.daemon.failure(f"{error} while running {script!r} in the guest") from error

    def __call__(self, script: str, timeout_seconds: float = COMMAND_SECONDS) -> str:
        """Run a shell script in it; returns what it printed.

        Raises:
            LabError: the script failed (the message is its output), or the machine stopped.
        """
        answer = self.run_script(script, timeout_seconds)
        if answer.status != 0:
            raise LabError(f"in the guest: status {answer.status}: {script}\n{answer.output}")
        return answer.output

    def put(self, path: Path, content: bytes) -> None:
        """Write a small file in the machine, readable by root only."""
        text = base64.b64encode(content).decode()
        self(f"umask 077; echo {text} | base64 -d >{path}")

    def start(self) -> None:
        """Start it if it does not run; returns at once."""
        self.run.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.daemon.pid() is None:
            self.daemon.start()

    def wait_booted(self) -> None:
        """Return when its shell answers.

        Each attempt waits twice as long as the one before: a script that is sent too early is lost,
        and a busy guest takes many seconds to answer.
        """
        seconds = PING_SECONDS

        def answers() -> bool:
            nonlocal seconds
            tried, seconds = seconds, min(2 * seconds, MAX_PING_SECONDS)
            return self.shell.answers(tried)

        wait_until(answers, "the guest to answer", BOOT_SECONDS, self.daemon)

    def resume(self) -> None:
        """Resume it after its snapshot is loaded, and set its clock, which stopped at the save."""
        self.wait(lambda: self.monitor.state not in {"inmigrate", "prelaunch"}, "the snapshot")
        if self.monitor.state != "running":
            self.monitor("cont")
        self.wait_booted()
        self(f"date -s @{time.time():.0f} >/dev/null")

    def wait(self, ready: Callable[[], bool], what: str) -> None:
        """Wait until `ready` is true; QEMU's sockets may not exist yet."""

        def done() -> bool:
            try:
                return ready()
            except OSError:
                return False

        wait_until(done, what, LOAD_SECONDS, self.daemon)


def machine_options(
    kernel: Kernel, archive: Path, disk: Path, api_port: int, forwards: str = ""
) -> tuple[str, ...]:
    """QEMU's options for a node.

    Args:
        kernel: what it boots.
        archive: the initramfs.
        disk: the node's root, read only.
        api_port: the API server's port on the host's loopback.
        forwards: further network options, e.g. `,hostfwd=tcp:127.0.0.1:1-:2`.
    """
    to_api = f"guestfwd=tcp:{GUEST_SERVER}:{GUEST_PORT}-cmd:busybox nc 127.0.0.1 {api_port}"
    return (
        *("-netdev", f"user,id=net,{to_api}{forwards}"),
        *hardware(MACHINE, kernel, archive, CONSOLE),
        *("-drive", f"if=none,id=root,file={disk},format=raw,readonly=on"),
        # The disk is beside NUMA node 1, since the machine's first bus is beside none. Devices that
        # name no bus would be put on this one if it came first.
        *("-device", f"pxb,id=beside,bus_nr={BESIDE_BUS},numa_node=1,bus=pci.0"),
        *("-device", "virtio-blk-pci,drive=root,bus=beside,addr=1"),
    )


def incoming(memory: Path) -> tuple[str, str]:
    """The options that start a machine from a saved one's memory."""
    return ("-incoming", f"exec:cat {shlex.quote(str(memory))}")
