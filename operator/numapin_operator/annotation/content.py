"""What the annotation of each pod says, by the assignment of its node.

docs/notice.md has the format for those who read it. Does no I/O.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from numapin_api.cpuset import CpuSet
from numapin_api.meta.modes import is_enforced
from numapin_api.schema.plain_assignment import ContainerAssignment, NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_operator.placement import is_dropped

VERSION: Final = 1
"""Grows when a field changes its meaning or goes; a reader must ignore fields it does not know."""


def annotations(spec: NodeAssignmentSpec, topology: Topology | None) -> dict[str, str]:
    """The text for each pod that has exclusive CPUs from numapin, by UID; others have none.

    What is only planned is told nobody.

    Args:
        spec: of the assignment, as written.
        topology: the machine; without it no NUMA nodes of CPUs are named.
    """
    if not is_enforced(spec.mode):
        return {}
    of_cpu = {cpu.id: cpu.numa_node for cpu in topology.cpus} if topology else {}
    of_pod: dict[str, list[ContainerAssignment]] = {}
    for one in spec.containers:
        if one.exclusive and not one.claimed:
            of_pod.setdefault(one.pod_uid, []).append(one)
    return {uid: _text(entries, of_cpu) for uid, entries in of_pod.items()}


def with_notice(spec: NodeAssignmentSpec) -> frozenset[str]:
    """The pods, by UID, with a container that CPUs will leave at a time that is known."""
    return frozenset(
        one.pod_uid for one in spec.containers if _leaves(one) and one.moving and one.moving.at
    )


def _text(entries: Iterable[ContainerAssignment], of_cpu: Mapping[int, int]) -> str:
    containers = {one.container: _container(one, of_cpu) for one in entries}
    return json.dumps({"version": VERSION, "containers": containers}, separators=(",", ":"))


def _container(entry: ContainerAssignment, of_cpu: Mapping[int, int]) -> dict[str, Any]:
    near = CpuSet(of_cpu[cpu] for cpu in entry.cpus if cpu in of_cpu)
    said: dict[str, Any] = {"cpus": str(entry.cpus), "numaNodes": str(near)}
    if entry.mems:
        said["mems"] = str(entry.mems)
    if _leaves(entry) and entry.moving is not None:
        leaving = {"cpus": str(entry.moving.leaving), "mems": str(entry.moving.leaving_mems)}
        leaving["at"] = entry.moving.at or ""
        said["leaving"] = {name: text for name, text in leaving.items() if text}
    return said


def _leaves(entry: ContainerAssignment) -> bool:
    """Whether the container still has CPUs that will leave it."""
    return entry.moving is not None and not is_dropped(entry)
