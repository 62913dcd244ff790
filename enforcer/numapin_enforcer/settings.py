"""The enforcer's frozen Settings, and what it shares with the standby; see `standby.settings`."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from numapin_api import names
from numapin_daemon.logs.options import LOG_OPTIONS
from numapin_daemon.options import (
    Address,
    Option,
    OptionParser,
    number_between,
    seconds_between,
)
from numapin_daemon.version import VERSION
from numapin_enforcer.node.realtime import DEFAULT_PRIORITY

NODE_NAME_VARIABLE: Final = "NODE_NAME"

_DESCRIPTION: Final = """\
Makes this node's cgroups match its NodeAssignment: exclusive containers get their CPUs, all other
containers leave them, and the kernel's answer is reported. When the enforcer ends, or is killed,
every container keeps the CPUs that it has."""

_EPILOG: Final = """\
Every option but --release can be set in the environment instead: NUMAPIN_ and its name in capitals,
such as NUMAPIN_CRI_SOCKET; the node's name also as NODE_NAME. An option on the command line wins.

In a pod the service account leads to the API server; elsewhere --kubeconfig, KUBECONFIG or
~/.kube/config does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """The settings of enforcer and standby; see `--help` for what each means."""

    node_name: str
    sysfs: Path
    cgroupfs: Path
    procfs: Path
    cgroup_root: str
    state_dir: Path
    run_dir: Path | None
    kubelet_state_dir: Path
    realtime_priority: int
    log_level: Literal["debug", "info", "warning", "error"]
    log_format: Literal["text", "json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(NodeSettings):
    """The settings of the enforcer."""

    kubeconfig: Path | None
    namespace: str
    cri_socket: Path | None
    nri_socket: Path
    pod_resources_socket: Path | None
    serve_pod_resources: Path | None
    cdi_dir: Path
    systemd_socket: Path
    irq_dir: Path
    workqueue_dir: Path
    resctrl_dir: Path
    health_address: Address
    resync_seconds: float
    most_moved_memory: int
    """In bytes."""

    container_metrics: bool
    cpu_metrics: bool
    interrupts: Path | None
    release: bool


def _cgroup(text: str) -> str:
    if not text.startswith("/") or ".." in text.split("/"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a cgroup: it starts with '/' and holds no '..'"
        )
    return text


def _byte_count(text: str) -> int:
    """An amount of memory as in a pod; imported here to save the standby 1 MiB."""
    from numapin_api.quantity import QuantityError, whole  # noqa: PLC0415

    try:
        size_bytes = whole(text)
    except QuantityError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if size_bytes < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is less than 0")
    return size_bytes


def _folder(flag: str, default: str, help_: str) -> Option:
    return Option(flag, default, help_, type=Path, metavar="DIR")


def _socket(
    flag: str, default: str | None, help_: str, type_: Callable[[str], object] = Path
) -> Option:
    return Option(flag, default, help_, type=type_, metavar="SOCKET")


NODE_NAME: Final = Option(
    "--node-name",
    None,
    f"this node's name in the cluster; also {NODE_NAME_VARIABLE} in the environment",
    metavar="NAME",
    also=NODE_NAME_VARIABLE,
)
_KUBECONFIG: Final = Option(
    "--kubeconfig", None, "how to reach the API server", type=Path, metavar="FILE"
)
_NAMESPACE: Final = Option(
    "--namespace", names.NAMESPACE, "namespace of this node's Lease", metavar="NAME"
)
_SOCKETS: Final = (
    _socket(
        "--cri-socket",
        None,
        "the container runtime's socket (default: containerd's or CRI-O's, whichever exists)",
    ),
    _socket(
        "--nri-socket",
        "/var/run/nri/nri.sock",
        "the container runtime's NRI socket; used only while the node's policy has startGate Wait",
    ),
    _socket(
        "--pod-resources-socket",
        "/var/lib/kubelet/pod-resources/kubelet.sock",
        "the kubelet's podresources socket, asked for the devices of pods; empty: not asked",
        lambda text: Path(text) if text else None,
    ),
    _socket(
        "--serve-pod-resources",
        None,
        "serve the kubelet's podresources API on a socket of this name as well, with the CPUs and "
        "the memory that containers have of numapin (default: not served)",
    ),
    _socket(
        "--systemd-socket",
        "/run/dbus/system_bus_socket",
        "the system's D-Bus, to set the cpusets of the kubelet's slices in systemd; used only if "
        "systemd is the kubelet's cgroup driver",
    ),
)
_CDI_DIR: Final = _folder(
    "--cdi-dir",
    "/var/run/cdi",
    "where DRA drivers tell the container runtime about devices, read for the CPUs that the driver "
    "dra.cpu has given away",
)
_INTERRUPTS: Final = (
    _folder(
        "--irq-dir",
        "/proc/irq",
        "the host's interrupts; read and written only while the node's policy has "
        "system.interrupts KeepOff, or to restore them",
    ),
    _folder(
        "--workqueue-dir",
        "/sys/devices/virtual/workqueue",
        "the workqueues of the host's kernel, for the same",
    ),
)
_RESCTRL: Final = _folder(
    "--resctrl-dir",
    "/sys/fs/resctrl",
    "where the host has mounted resctrl; read and written only while the node's policy has cache, "
    "or to restore it",
)
HOST: Final = (
    Option(
        "--cgroup-root",
        "/",
        "the kubelet's cgroupRoot: the cgroup that holds kubepods",
        type=_cgroup,
        metavar="CGROUP",
    ),
    _folder("--sysfs", "/sys", "the host's sysfs, read for the hardware"),
    _folder("--cgroupfs", "/sys/fs/cgroup", "the host's cgroups"),
    _folder("--procfs", "/proc", "the host's procfs"),
    _folder("--state-dir", "/var/lib/numapin", "where the last accepted assignment is stored"),
    Option(
        "--run-dir",
        None,
        "a folder in memory, below /run, where the enforcer shows that it makes progress; without "
        "it the standby fences only while the enforcer does not run, not while it hangs",
        type=Path,
        metavar="DIR",
    ),
    _folder(
        "--kubelet-state-dir",
        "/var/lib/kubelet",
        "where the kubelet's cpu_manager_state and memory_manager_state are, which name the "
        "policies of its CPU and memory managers",
    ),
)
_RUNNING: Final = (
    Option(
        "--health-address",
        "127.0.0.1:8081",
        "where /healthz, /readyz and /metrics are served",
        type=Address.parse,
        metavar="HOST:PORT",
    ),
    Option(
        "--container-metrics",
        False,
        "also have metrics of each exclusive container, whose labels name its namespace, pod and "
        "container to everything that may read /metrics",
        type=bool,
    ),
    Option(
        "--cpu-metrics",
        False,
        "also have metrics of each exclusive CPU, whose labels name interrupts, and a page /cpus "
        "for `numapin check`, which names containers, tasks of the host and interrupts to "
        "everything that may read /metrics",
        type=bool,
    ),
    Option(
        "--interrupts",
        None,
        "the host's /proc/interrupts, read with --cpu-metrics (default: that of --procfs, which is "
        "empty in a pod of Kubernetes 1.34 or newer)",
        type=Path,
        metavar="FILE",
    ),
    Option(
        "--resync-seconds",
        10,
        "time between two passes that check all exclusive CPUs, even if no event came; every sixth "
        "one reads everything",
        type=seconds_between(0.1, 3600),
        metavar="SECONDS",
    ),
    Option(
        "--most-moved-memory",
        "16Gi",
        "a running container that has more than this on other NUMA nodes is not bound to its own "
        "until its pod is created again: up to Linux 6.17 no container starts on the node while "
        "memory is moved",
        type=_byte_count,
        metavar="QUANTITY",
    ),
)
PRIORITY: Final = Option(
    "--realtime-priority",
    DEFAULT_PRIORITY,
    "the priority of SCHED_RR with which this process runs; threads of pods with the same one or a "
    "higher one can keep it from the shared CPUs. 0: an ordinary process, which every real-time "
    "thread and, for some milliseconds, every busy one can delay",
    type=number_between(0, 99),
    metavar="NUMBER",
)


def parse_settings(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """Read command line and environment.

    Raises:
        SystemExit: `--help` and `--version` (0), or an option that makes no sense (2); the reason
            is on standard error.
    """
    program = "numapin-enforcer"
    parser = OptionParser(program, environment, description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_version(f"{program} {VERSION}")
    parser.add_switch(
        "--release",
        "give every cgroup what its parent has, print what was done, and end; for uninstalling, "
        "while no enforcer runs on the node",
    )
    parser.add(NODE_NAME, _KUBECONFIG, _NAMESPACE, group="the cluster")
    parser.add(*_SOCKETS, *HOST, _CDI_DIR, *_INTERRUPTS, _RESCTRL, group="the host")
    parser.add(*_RUNNING, PRIORITY, *LOG_OPTIONS, group="running")
    options = parser.parse(arguments)
    if not options["release"]:
        need_node_name(parser, options)
    if options["serve_pod_resources"] and not options["pod_resources_socket"]:
        parser.fail("--serve-pod-resources adds to the answers of --pod-resources-socket: name it")
    return Settings(**options)


def need_node_name(parser: OptionParser, options: Mapping[str, Any]) -> None:
    """End with the reason on standard error unless the node's name is known."""
    if not options["node_name"]:
        parser.fail(
            f"the node's name is missing: give --node-name, or {NODE_NAME_VARIABLE} in the "
            "environment (in a pod: fieldRef spec.nodeName)"
        )
