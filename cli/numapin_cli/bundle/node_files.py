"""What a report has of the node that it is made on: hardware, cgroups, the kubelet's states."""

import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from numapin_api.hardware.machine_file import format_machine
from numapin_cli.bundle.collected import Collected
from numapin_cli.inputs.machines import discover_below
from numapin_cli.subcommand import CommandError
from numapin_enforcer.cgroups.cgroupfs import Cgroupfs
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.kubepods.finder import NoKubepodsError, find_naming
from numapin_enforcer.cgroups.mounts import Mounts, NoCpusetError, find_mounts
from numapin_enforcer.cgroups.naming import CgroupNaming, InvalidIdError

STATES: Final = ("cpu_manager_state", "memory_manager_state")
_MOST_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Places:
    """Where a node's parts are.

    Attributes:
        root: folder that holds the machine's sys and proc.
        cgroup_root: the kubelet's cgroupRoot.
        kubelet: the kubelet's folder.
    """

    root: Path
    cgroup_root: str
    kubelet: Path


def collect_node(collected: Collected, places: Places) -> bool:
    """Add what this machine says; returns whether it is a node, which has cgroups of pods.

    Args:
        collected: the report.
        places: where the machine's parts are.
    """
    try:
        mounts = find_mounts(places.root / "sys" / "fs" / "cgroup")
        naming = find_naming(mounts, places.cgroup_root)
    except (NoCpusetError, NoKubepodsError, InvalidIdError) as absent:
        collected.problems.append(
            f"node: this machine is no node: {absent}; for its cgroups and hardware, run"
            " numapin report on the node"
        )
        return False
    _add_cgroups(collected, mounts, naming)
    try:
        topology = discover_below(places.root)
        collected.add("node/topology.json", format_machine(topology), "the node's hardware")
        if topology.warnings:
            collected.add("node/topology-warnings.txt", "\n".join(topology.warnings) + "\n")
    except CommandError as problem:
        collected.problems.append(f"node/topology.json: {problem}")
    system = platform.uname()
    facts = {
        "hostname": system.node,
        "kernel": system.release,
        "machine": system.machine,
        "cgroupVersion": int(mounts.version),
        "cgroupDriver": naming.driver.value,
        "kubepods": naming.root,
    }
    collected.add("node/node.json", json.dumps(facts, indent=2) + "\n", "kernel and cgroup version")
    for name in STATES:
        _add_state(collected, places.kubelet / name)
    return True


def _add_cgroups(collected: Collected, mounts: Mounts, naming: CgroupNaming) -> None:
    try:
        tree = Cgroupfs(mounts, naming.root, naming).read()
    except CgroupError as problem:
        collected.problems.append(f"node/cgroups.txt: {problem}")
        return
    lines = [
        f"{one.path}  cpus={one.cpus} mems={one.mems}"
        f" effective={one.effective_cpus} effective_mems={one.effective_mems}"
        for one in tree.cgroups.values()
    ]
    lines += [f"{one.path}  not read: {one.why}" for one in tree.unread]
    text = "\n".join(lines) + "\n"
    collected.add("node/cgroups.txt", text, "the kubelet's cgroups with their CPUs and NUMA nodes")


def _add_state(collected: Collected, file: Path) -> None:
    """Add a state file of the kubelet; one that does not exist is no problem."""
    try:
        with file.open("rb") as stream:
            content = stream.read(_MOST_BYTES)
    except FileNotFoundError:
        return
    except OSError as problem:
        collected.problems.append(f"node/{file.name}: {file}: {problem.strerror}")
        return
    collected.add(f"node/{file.name}", content, "which CPUs or memory the kubelet has given away")
