"""What stays of the previous assignment when a plan begins.

Does no I/O.
"""

from numapin_api.schema.plain_assignment import ContainerAssignment, NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_operator.placement.assignment.this_machine import on_this_machine
from numapin_operator.placement.requests import PodView


def kept_entries(
    topology: Topology,
    previous: NodeAssignmentSpec | None,
    alive: dict[str, PodView],
    running: frozenset[str],
) -> dict[str, list[ContainerAssignment]]:
    """The entries of the previous assignment that still hold, by pod, in their order."""
    held: dict[str, list[ContainerAssignment]] = {}
    ended = {uid: _ended(pod) for uid, pod in alive.items()}
    for entry in previous.containers if previous else ():
        if entry.pod_uid not in alive and entry.pod_uid not in running:
            continue
        still = on_this_machine(entry, topology)
        if still is not None and entry.container not in ended.get(entry.pod_uid, ()):
            held.setdefault(entry.pod_uid, []).append(still)
    return held


def _ended(pod: PodView) -> frozenset[str]:
    """Init containers that have released their CPUs; none if the pod has them as a whole."""
    if pod.pod_level is not None:
        return frozenset()
    return frozenset([container.name for container in pod.containers if container.ended])
