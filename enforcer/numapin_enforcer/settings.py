"""One frozen Settings a program, from flags and NUMAPIN_*; the only reader of the environment."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Literal

PREFIX: Final = "NUMAPIN_"
NODE_NAME_VARIABLE: Final = "NODE_NAME"

_DESCRIPTION: Final = """\
Makes this node's kernel match its NodeAssignment: containers with CPUs of their own get them,
everybody else leaves them, and what the kernel answers is reported. Ending it (SIGTERM, or worse)
leaves every container where it is."""

_EPILOG: Final = """\
Every option can be set in the environment instead: NUMAPIN_ and its name in capitals, such as
NUMAPIN_CRI_SOCKET; the node's name also as NODE_NAME. An option on the command line wins.

In a pod the API server is found and logged in to by the service account; elsewhere --kubeconfig,
or KUBECONFIG, or ~/.kube/config says how."""


_STANDBY_DESCRIPTION: Final = """\
Stands by for this node's enforcer. While that is away (it crashed, it is being replaced), new pods
are kept off CPUs that others own, by the assignment that it left on the node; nobody is pinned,
and nothing is reported. As soon as it is back, nothing is touched any more."""

_STANDBY_EPILOG: Final = """\
Every option can be set in the environment instead: NUMAPIN_ and its name in capitals, such as
NUMAPIN_STATE_DIR; the node's name also as NODE_NAME. An option on the command line wins. The
options have to be the enforcer's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """What enforcer and standby of a node are both told; see `--help` for what each means."""

    node_name: str
    sysfs: Path
    cgroupfs: Path
    procfs: Path
    cgroup_root: str
    state_dir: Path
    kubelet_state_dir: Path
    log_format: Literal["text", "json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(NodeSettings):
    """How this enforcer is to run."""

    kubeconfig: Path | None
    cri_socket: Path | None
    systemd_socket: Path
    health_address: tuple[str, int]
    resync_seconds: float
    release: bool


def parse_settings(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """Read command line and environment.

    Raises:
        SystemExit: `--help` and `--version` (0), or an option that makes no sense (2); the reason
            is on stderr.
    """
    parser = _parser("numapin-enforcer", _DESCRIPTION, _EPILOG)
    parser.add_argument(
        "--release",
        action="store_true",
        help="give every cgroup back to where it was, say what was done, and end; "
        "for uninstalling, with no enforcer running on the node",
    )
    cluster = _Options(parser.add_argument_group("the cluster"), environment)
    _add_node_name(cluster)
    cluster.add("--kubeconfig", None, "how to reach the API server", type=Path, metavar="FILE")
    host = _Options(parser.add_argument_group("the host"), environment)
    _add_sockets(host)
    _add_host_options(host)
    running = _Options(parser.add_argument_group("running"), environment)
    _add_running_options(running)
    _add_log_format(running)
    options = vars(parser.parse_args(arguments))
    if not options["release"]:
        _need_node_name(parser, options)
    return Settings(**options)


def parse_standby_settings(
    arguments: Sequence[str], environment: Mapping[str, str]
) -> NodeSettings:
    """Read the standby's command line and environment.

    Raises:
        SystemExit: as in `parse_settings`.
    """
    parser = _parser("numapin-standby", _STANDBY_DESCRIPTION, _STANDBY_EPILOG)
    _add_node_name(_Options(parser.add_argument_group("the cluster"), environment))
    _add_host_options(_Options(parser.add_argument_group("the host"), environment))
    _add_log_format(_Options(parser.add_argument_group("running"), environment))
    options = vars(parser.parse_args(arguments))
    _need_node_name(parser, options)
    return NodeSettings(**options)


def _parser(name: str, description: str, epilog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=name,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('numapin')}")
    return parser


def _need_node_name(parser: argparse.ArgumentParser, options: Mapping[str, Any]) -> None:
    if not options["node_name"]:
        parser.error(
            f"the node's name is missing: give --node-name, or {NODE_NAME_VARIABLE} in the "
            "environment (in a pod: fieldRef spec.nodeName)"
        )


class _Options:
    """Adds options whose default is the environment's word, and says so in the help."""

    def __init__(self, group: Any, environment: Mapping[str, str]) -> None:
        self._group, self._environment = group, environment

    def add(self, name: str, default: Any, help_: str, **more: Any) -> None:
        variable = PREFIX + name.removeprefix("--").replace("-", "_").upper()
        shown = f" (default: {default})" if default not in {None, ""} else ""
        found = self._environment.get(variable) or default
        value = found if found is None else str(found)
        self._group.add_argument(name, default=value, help=help_ + shown, **more)

    def variable(self, name: str) -> str | None:
        return self._environment.get(name)


def _add_node_name(options: _Options) -> None:
    options.add(
        "--node-name",
        options.variable(NODE_NAME_VARIABLE),
        f"this node's name in the cluster; {NODE_NAME_VARIABLE} in the environment gives it too",
        metavar="NAME",
    )


def _add_sockets(options: _Options) -> None:
    options.add(
        "--cri-socket",
        None,
        "the container runtime's socket (default: containerd's or CRI-O's, whichever is there)",
        type=Path,
        metavar="SOCKET",
    )
    options.add(
        "--systemd-socket",
        "/run/dbus/system_bus_socket",
        "the system's D-Bus, where systemd is told what the kubelet's slices have; used only where "
        "systemd is the kubelet's cgroup driver",
        type=Path,
        metavar="SOCKET",
    )


def _add_host_options(options: _Options) -> None:
    options.add(
        "--cgroup-root",
        "/",
        "the kubelet's cgroupRoot: the cgroup that its kubepods is in",
        type=_cgroup,
        metavar="CGROUP",
    )
    folders = {
        "--sysfs": ("/sys", "the host's sysfs, read for the hardware"),
        "--cgroupfs": ("/sys/fs/cgroup", "the host's cgroups"),
        "--procfs": ("/proc", "the host's procfs"),
        "--state-dir": ("/var/lib/numapin", "where the last accepted assignment is kept"),
        "--kubelet-state-dir": (
            "/var/lib/kubelet",
            "where the kubelet's cpu_manager_state is, which tells its CPU manager policy",
        ),
    }
    for name, (default, help_) in folders.items():
        options.add(name, default, help_, type=Path, metavar="DIR")


def _add_running_options(options: _Options) -> None:
    options.add(
        "--health-address",
        "127.0.0.1:8081",
        "where /healthz and /readyz are answered",
        type=_address,
        metavar="HOST:PORT",
    )
    options.add(
        "--resync-seconds",
        10,
        "how often to look at everything even if nothing seems to have happened",
        type=_seconds,
        metavar="SECONDS",
    )


def _add_log_format(options: _Options) -> None:
    options.add("--log-format", "text", "text or json", choices=("text", "json"))


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT, such as 127.0.0.1:8081")
    return host.strip("[]"), int(port)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.1 to 3600")
    return seconds


def _cgroup(text: str) -> str:
    if not text.startswith("/") or ".." in text.split("/"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a cgroup: it starts with '/' and holds no '..'"
        )
    return text
