"""What stays of the previous assignment when a plan begins.

Does no I/O.
"""

from collections.abc import Collection, Mapping

from numapin_api.schema.plain_assignment import ContainerAssignment, NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_operator.placement.assignment.this_machine import on_this_machine
from numapin_operator.placement.requests import PodView

Entries = dict[str, list[ContainerAssignment]]


def entries_by_pod(previous: NodeAssignmentSpec | None) -> Entries:
    """The entries of an assignment by pod, in their order."""
    held: Entries = {}
    for entry in previous.containers if previous else ():
        listed = held.get(entry.pod_uid)
        if listed is None:
            held[entry.pod_uid] = [entry]
        else:
            listed.append(entry)
    return held


def kept_entries(
    topology: Topology,
    held: Entries,
    alive: Mapping[str, PodView],
    running: frozenset[str],
    settled: Collection[str] = (),
) -> Entries:
    """The entries of the previous assignment that still hold, by pod, in their order.

    Args:
        topology: the machine.
        held: all of them, by pod.
        alive: the pods that have not ended, or still run.
        running: UIDs of the pods whose cgroups still exist.
        settled: UIDs of those pods in `held` whose entries are known to hold.
    """
    kept: Entries = {}
    if len(settled) == len(held):
        return dict(held)
    for uid, listed in held.items():
        if uid in settled:
            kept[uid] = listed
        elif uid in alive or uid in running:
            ended = _ended(alive[uid]) if uid in alive else frozenset()
            if still := _still(listed, topology, ended):
                kept[uid] = still
    return kept


def _still(
    listed: list[ContainerAssignment], topology: Topology, ended: Collection[str]
) -> list[ContainerAssignment]:
    """The entries that hold of one pod."""
    on_machine = (on_this_machine(one, topology) for one in listed)
    return [one for one in on_machine if one is not None and one.container not in ended]


def _ended(pod: PodView) -> frozenset[str]:
    """Init containers that have released their CPUs; none if the pod has them as a whole."""
    if pod.pod_level is not None:
        return frozenset()
    return frozenset([container.name for container in pod.containers if container.ended])
