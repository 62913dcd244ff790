"""`python -m numapin_lab`: a real one-node Kubernetes on this machine."""

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from numapin_lab.components.build import provide, say
from numapin_lab.components.catalog import COMPONENTS
from numapin_lab.errors import LabError
from numapin_lab.lifecycle import LabFolder
from numapin_lab.requirements import check
from numapin_lab.vm.machine import Machine, VirtualMachine

DEFAULT_FOLDER = ".lab"
INTERRUPTED = 130
_DESCRIPTION = "A real one-node Kubernetes on this machine. docs/lab.md describes it."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = build_parser().parse_args(arguments)
    # SIGTERM is treated like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = LabFolder(Path(options.dir).absolute())
    try:
        return COMMANDS[options.command](folder, options)
    except (LabError, OSError) as error:
        say(f"lab: {error}")
        return 1
    except KeyboardInterrupt:
        say(f"lab: interrupted; remove what was started with: {_command('down', folder)}")
        return INTERRUPTED


def build_parser() -> argparse.ArgumentParser:
    """Options and commands."""
    parser = argparse.ArgumentParser(prog="python -m numapin_lab", description=_DESCRIPTION)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_up(
        commands.add_parser(
            "up", help="start every part that is not running; the last line is KUBECONFIG=..."
        )
    )
    commands.add_parser("down", help="end every part; only the logs stay")
    commands.add_parser("status", help="show what runs, and where the logs are")
    commands.add_parser("components", help="find or build every component, and show where it is")
    _add_program(commands.add_parser("guest", help="run a command in the node of a lab with --vm"))
    _add_vm(commands.add_parser("vm", help="run a command in a virtual machine with NUMA nodes"))
    for command in commands.choices.values():
        add_folder(command)
    return parser


def add_folder(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a lab."""
    parser.add_argument(
        "--dir",
        default=os.environ.get("NUMAPIN_LAB", DEFAULT_FOLDER),
        help="the lab's folder; several labs live side by side (default: %(default)s)",
    )


def _add_up(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--vm", action="store_true", help="with a virtual machine as node: NUMA, cgroup v2"
    )
    parser.add_argument(
        "--systemd",
        action="store_true",
        help="with --vm: systemd is its process 1 and the kubelet's cgroup driver",
    )
    parser.add_argument(
        "--pods", action="store_true", help="run numapin as pods, from manifests/overlays/default"
    )
    for agent in ("operator", "enforcer"):
        parser.add_argument(
            f"--no-{agent}",
            dest="without",
            action="append_const",
            const=agent,
            default=[],
            help=f"do not start the {agent}, to run it by hand",
        )
    parser.add_argument(
        "--kubelet-config",
        type=Path,
        metavar="FILE",
        help="YAML with fields of KubeletConfiguration, such as cpuManagerPolicy: static",
    )


def _add_vm(parser: argparse.ArgumentParser) -> None:
    for name, default, meaning in (
        ("sockets", 2, "CPU sockets"),
        ("cores", 2, "cores of each socket"),
        ("threads", 2, "threads of each core"),
        ("numa-nodes", 2, "NUMA nodes, which share the CPUs and the memory evenly"),
        ("memory-mib", 3072, "memory of the whole machine in MiB"),
    ):
        text = f"{meaning} (default: %(default)s)"
        parser.add_argument(f"--{name}", type=int, default=default, metavar="NUMBER", help=text)
    parser.add_argument(
        "--append",
        default="",
        metavar="TEXT",
        help="more of the kernel's command line, such as isolcpus=3,7",
    )
    _add_program(parser)


def _add_program(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout-seconds",
        type=float,
        default=600,
        metavar="SECONDS",
        help="how long the program may run; then it fails (default: %(default)s)",
    )
    parser.add_argument("program", nargs="+", help="the program and its arguments, after --")


def _guest(folder: LabFolder, options: argparse.Namespace) -> int:
    answer = folder.guest().run_script(shlex.join(options.program), options.timeout_seconds)
    print(answer.output, end="")
    return answer.status


def _vm(_: LabFolder, options: argparse.Namespace) -> int:
    machine = Machine(
        options.sockets,
        options.cores,
        options.threads,
        options.numa_nodes,
        options.memory_mib,
        options.append,
    )

    def echo(line: str) -> None:
        print(line, end="", flush=True)

    return VirtualMachine(machine).run(options.program, options.timeout_seconds, echo).status


def _up(folder: LabFolder, options: argparse.Namespace) -> int:
    known = folder.state()
    pods = options.pods or bool(known and known.pods)
    check(_command("up", folder), pods=pods)
    settings = _kubelet_settings(options.kubelet_config) if options.kubelet_config else None
    new = LabFolder(folder.path, options.vm, pods, options.systemd)
    new.up(frozenset(options.without), kubelet=settings)
    print(f"KUBECONFIG={folder.kubeconfig}")
    return 0


def _kubelet_settings(file: Path) -> Mapping[str, Any]:
    try:
        settings = yaml.safe_load(file.read_text())
    except yaml.YAMLError as error:
        raise LabError(f"{file} is not YAML: {error}") from error
    if not isinstance(settings, dict):
        raise LabError(f"{file} does not hold fields of KubeletConfiguration")
    return settings


def _down(folder: LabFolder, _: argparse.Namespace) -> int:
    folder.down()
    return 0


def _status(folder: LabFolder, _: argparse.Namespace) -> int:
    """Exit status 0: every part that was started runs. 1: a part has ended."""
    for part in folder.status():
        state = "-" if part.pid is None else str(part.pid)
        shown = part.log if part.log.exists() else "never started"
        print(f"{part.name:<24} {'running' if part.pid else 'not running':<12} {state:>8}  {shown}")
    if folder.state() is None:
        print("the lab is down")
        return 1
    print(f"KUBECONFIG={folder.kubeconfig}")
    started = [part for part in folder.status() if part.log.exists()]
    return 0 if all(part.pid for part in started) else 1


def _components(_: LabFolder, __: argparse.Namespace) -> int:
    for name, found in provide([*COMPONENTS]).items():
        print(f"{name:<24} {found.origin:<18} {found.path}")
    return 0


def _command(command: str, folder: LabFolder) -> str:
    return f"{sys.executable} -m numapin_lab {command} --dir {folder.path}"


COMMANDS = {
    "up": _up,
    "down": _down,
    "status": _status,
    "vm": _vm,
    "guest": _guest,
    "components": _components,
}

if __name__ == "__main__":
    sys.exit(main())
