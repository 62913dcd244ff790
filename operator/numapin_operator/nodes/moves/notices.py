"""Events on pods whose containers are moved. Does no I/O."""

from collections.abc import Iterator

from numapin_api.conditions.reasons import Reason
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_operator.cluster import PodEvent
from numapin_operator.nodes.moves.changes import changes, where, why


def notices_of_moves(
    before: NodeAssignmentSpec | None, after: NodeAssignmentSpec, topology: Topology | None
) -> Iterator[PodEvent]:
    """The Events on pods whose containers begin or end a move with this write."""
    for change in changes(before, after):
        one = change.after
        if change.begins:
            mine = one.moving is not None and one.moving.namespace == one.namespace
            what = f"{where(change)}, {why(change, topology, is_named=mine)}"
            note = f"container {one.container} moves {what}; it has both for a while"
            reason = Reason.CPUS_MOVING
        else:
            reason, note = Reason.CPUS_MOVED, f"container {one.container} has CPUs {one.cpus} now"
        yield PodEvent(one.namespace, one.pod, one.pod_uid, reason, note, is_warning=False)
