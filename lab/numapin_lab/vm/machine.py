"""A virtual machine with a chosen NUMA topology, cgroup v2, and the host's own programs.

It is emulated (TCG), so it runs on any host. Assert order and state in it, but no durations.
"""

import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from numapin_lab.errors import LabError, MissingError
from numapin_lab.node.containerd import SEARCH_PATH
from numapin_lab.node.image import find_busybox
from numapin_lab.vm.initramfs import CONSOLE, RUN_COMMAND, command_script, initramfs
from numapin_lab.vm.kernel import Kernel, provide_kernel
from numapin_lab.vm.systemd import under_systemd

QEMU = "qemu-system-x86_64"
QEMU_REMEDY = "apt-get install -y --no-install-recommends qemu-system-x86"
REMOTE_DISTANCE = 21
LINES = 20
GUEST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class NumaNode:
    """One NUMA node: its first and last CPU (None: it has no CPUs), and its memory."""

    cpus: tuple[int, int] | None
    memory_mib: int

    def arguments(self, number: int) -> list[str]:
        """QEMU's options for it."""
        node, options = f"node,nodeid={number}", []
        if self.cpus is not None:
            node += ",cpus={}-{}".format(*self.cpus)
        if self.memory_mib:
            node += f",memdev=m{number}"
            backend = f"memory-backend-ram,id=m{number},size={self.memory_mib}M"
            options = ["-object", backend]
        return [*options, "-numa", node]


@dataclass(frozen=True)
class Machine:
    """The hardware: CPUs are numbered thread by thread, core by core, socket by socket.

    CPUs and memory are divided evenly among the NUMA nodes, unless `layout` lists the nodes. It
    replaces `numa_nodes` and `memory_mib`; the guest's kernel may then number the nodes without
    CPUs after the others. `append` is added to the kernel's command line, e.g.
    `isolcpus=3,7 hugepages=64`.
    """

    sockets: int = 2
    cores: int = 2
    threads: int = 2
    numa_nodes: int = 2
    memory_mib: int = 3072
    append: str = ""
    layout: tuple[NumaNode, ...] = ()

    @property
    def cpus(self) -> int:
        """The number of logical CPUs."""
        return self.sockets * self.cores * self.threads

    def arguments(self) -> list[str]:
        """QEMU's options for it.

        Raises:
            LabError: CPUs or memory cannot be divided evenly among the NUMA nodes.
        """
        nodes = self.layout or self._even()
        shape = f"sockets={self.sockets},cores={self.cores},threads={self.threads}"
        memory_mib = sum(node.memory_mib for node in nodes)
        options = ["-m", f"{memory_mib}M", "-smp", f"{self.cpus},{shape}"]
        for number, node in enumerate(nodes):
            options += node.arguments(number)
        for number in range(len(nodes)):
            for other in range(number + 1, len(nodes)):
                distance = f"dist,src={number},dst={other},val={REMOTE_DISTANCE}"
                options += ["-numa", distance]
        return options

    def _even(self) -> tuple[NumaNode, ...]:
        if self.cpus % self.numa_nodes or self.memory_mib % self.numa_nodes:
            raise LabError(
                f"{self.cpus} CPUs and {self.memory_mib} MiB cannot be divided evenly among "
                f"{self.numa_nodes} NUMA nodes"
            )
        cpus, memory_mib = self.cpus // self.numa_nodes, self.memory_mib // self.numa_nodes
        return tuple(
            NumaNode((node * cpus, (node + 1) * cpus - 1), memory_mib)
            for node in range(self.numa_nodes)
        )


@dataclass(frozen=True)
class Result:
    """Exit status and output of a command in the guest; `console` is the kernel's output."""

    status: int
    output: str
    console: str


@dataclass(frozen=True)
class VirtualMachine:
    """Boots `machine` for each command; with `systemd`, systemd is process 1 and starts it.

    `options` are more ones of QEMU. The guest reaches a port of the host's loopback at 10.0.2.2.
    """

    machine: Machine = Machine()
    environment: dict[str, str] = field(default_factory=dict)
    systemd: bool = False
    options: tuple[str, ...] = ()

    def run(
        self,
        command: Sequence[str],
        timeout_seconds: float = 300,
        echo: Callable[[str], None] = lambda _: None,
    ) -> Result:
        """Boot, run one command in the current folder as root, power off.

        Args:
            command: what to run; it sees every file of the host, and its changes are lost.
            timeout_seconds: for boot, command and shutdown together.
            echo: receives the output line by line.

        Raises:
            MissingError: QEMU, a kernel or busybox is missing.
            LabError: the command did not end in the guest; the message has the end of the console.
        """
        qemu = find_qemu()
        kernel, busybox = provide_kernel(), find_busybox(SEARCH_PATH)
        variables = {"PATH": GUEST_PATH, "HOME": "/root", "LANG": "C.UTF-8", **self.environment}
        script = command_script(command, Path.cwd(), variables)
        if self.systemd:
            script = under_systemd(script)
        with tempfile.TemporaryDirectory(prefix="numapin-vm-") as name:
            folder = Path(name)
            files = {"command": script.encode()}
            (folder / "initramfs").write_bytes(initramfs(kernel, busybox, RUN_COMMAND, files))
            options = self._options(kernel, folder)
            return _boot([str(qemu), *options], folder, timeout_seconds, echo)

    def _options(self, kernel: Kernel, folder: Path) -> list[str]:
        return [
            *("-serial", "stdio"),
            *("-serial", f"file:{folder / 'console'}"),
            *("-serial", f"file:{folder / 'status'}"),
            *("-netdev", "user,id=net"),
            *hardware(self.machine, kernel, folder / "initramfs", CONSOLE),
            *self.options,
        ]


def find_qemu() -> Path:
    """The emulator.

    Raises:
        MissingError: QEMU is not installed.
    """
    found = shutil.which(QEMU, path=SEARCH_PATH)
    if found is None:
        raise MissingError("the virtual machine needs QEMU", QEMU_REMEDY)
    return Path(found)


def hardware(machine: Machine, kernel: Kernel, archive: Path, console: str) -> list[str]:
    """QEMU's options for a machine with the host's files (9p tag `root`) and a network card.

    The caller adds `-netdev user,id=net` for the card, and the serial lines. `console` is the
    serial line of the kernel's console.
    """
    # A single thread emulates faster than one for each CPU if the host has fewer CPUs.
    # Nehalem shows threads, cores and a cache for each socket; QEMU's default CPU does not. It has
    # no pages of 1 GiB.
    share = "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap"
    # A kernel that guards this CPU model against Meltdown flushes QEMU's copy of the page tables at
    # each system call, which then takes four times as long.
    speed = "mitigations=off tsc=unstable"
    cmdline = f"console={console} quiet panic=-1 random.trust_cpu=on {speed}"
    return [
        *("-accel", "tcg,thread=single", "-cpu", "Nehalem-v1,+pdpe1gb"),
        *("-nodefaults", "-display", "none", "-no-reboot"),
        *("-kernel", str(kernel.image), "-initrd", str(archive)),
        *("-append", f"{cmdline} {machine.append}"),
        *("-virtfs", share, "-device", "virtio-net-pci,netdev=net,romfile="),
        *machine.arguments(),
    ]


def _boot(
    command: Sequence[str], folder: Path, timeout_seconds: float, echo: Callable[[str], None]
) -> Result:
    output: list[str] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        alarm = threading.Timer(timeout_seconds, process.kill)
        alarm.start()
        try:
            for line in process.stdout:
                output.append(line)
                echo(line)
        finally:
            alarm.cancel()
            process.kill()
    console = _read(folder / "console")
    status = _read(folder / "status").strip()
    if not status.isdigit():
        shown = "".join(output[-LINES:]) + "\n".join(console.splitlines()[-LINES:])
        raise LabError(f"the guest did not finish within {timeout_seconds:.0f} s:\n{shown}")
    return Result(int(status), "".join(output), console)


def _read(file: Path) -> str:
    return file.read_text(errors="replace") if file.exists() else ""
