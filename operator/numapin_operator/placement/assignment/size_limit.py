"""How much of a NodeAssignment is left while pods are placed, and what does not fit in.

An object that is larger than etcd takes would never be written, and the node would stand still. So
a pod that does not fit is refused, and `refused` is cut. Does no I/O.
"""

import json
from collections.abc import Iterable
from typing import Final

from numapin_api.nodeassignment import (
    CONTAINERS_BYTES,
    MAX_BLOCK_NODES,
    MAX_BLOCKS,
    MAX_ENTRIES,
    MAX_REFUSED,
    SPEC_BYTES,
)
from numapin_api.schema.plain_assignment import ContainerAssignment, Refusal
from numapin_operator.placement.allocations import PodAllocation
from numapin_operator.placement.errors import AssignmentFullError

_ENTRY_BYTES: Final = 150
_BLOCK_BYTES: Final = 90
_ID_BYTES: Final = 5
_REFUSAL_BYTES: Final = 100
_MOVED_BYTES: Final = 40
_MOVING_BYTES: Final = 120
_ESCAPED: Final = "<>&"
"""JSON: keys and punctuation of an entry, of a memory block with its size, of an id in a list, of
a refusal, of the time of a move, and of a move. The API server writes each of the last characters
as six bytes."""


class SizeLimit:
    """What a NodeAssignment still has room for."""

    def __init__(
        self, kept: Iterable[ContainerAssignment], entries: int = 0, size_bytes: int = 0
    ) -> None:
        """Start with the entries that stay, and as many others as are counted already."""
        self._entries, self._bytes, self._refused_bytes = entries, size_bytes, 0
        for entry in kept:
            self._entries += 1
            self._bytes += entry_bytes(entry)

    def take(self, entries: Iterable[ContainerAssignment]) -> None:
        """Add the entries of one pod.

        Raises:
            AssignmentFullError: there is no room for them; nothing is added.
        """
        listed = tuple(entries)
        count, size = self._entries + len(listed), self._bytes + sum(map(entry_bytes, listed))
        if count > MAX_ENTRIES:
            raise AssignmentFullError(
                f"wanted {len(listed)} entries in the NodeAssignment, which has {self._entries} and"
                f" takes {MAX_ENTRIES}; run fewer containers on this node"
            )
        if size > CONTAINERS_BYTES:
            raise AssignmentFullError(
                f"wanted {size - self._bytes} bytes in the NodeAssignment, which has {self._bytes}"
                f" and takes {CONTAINERS_BYTES}; run fewer containers on this node"
            )
        self._entries, self._bytes = count, size

    def replace(self, before: ContainerAssignment, after: ContainerAssignment) -> bool:
        """Count another entry in the place of one; False, and nothing changes, if it is too big."""
        size = self._bytes + entry_bytes(after) - entry_bytes(before)
        if size > CONTAINERS_BYTES:
            return False
        self._bytes = size
        return True

    def take_refused(
        self, refused: Iterable[Refusal], most: int = MAX_REFUSED
    ) -> tuple[Refusal, ...]:
        """Add refusals, as many of the first ones as there is room for, and return them."""
        listed = list[Refusal]()
        for refusal in refused:
            size = refusal_bytes(refusal)
            if self._bytes + self._refused_bytes + size > SPEC_BYTES or len(listed) == most:
                break
            self._refused_bytes += size
            listed.append(refusal)
        return tuple(listed)


def check_blocks(allocation: PodAllocation) -> None:
    """Refuse a pod whose memory lies on more NUMA nodes than an entry can list.

    Raises:
        AssignmentFullError: it does.
    """
    for container in (*allocation.containers, *filter(None, (allocation.pod_level,))):
        most = max((block.numa_nodes.bit_count() for block in container.memory), default=0)
        if len(container.memory) > MAX_BLOCKS or most > MAX_BLOCK_NODES:
            raise AssignmentFullError(
                f"wanted memory of more than {MAX_BLOCKS} NUMA nodes, or of more than "
                f"{MAX_BLOCK_NODES} together; request less memory"
            )


def entry_bytes(entry: ContainerAssignment) -> int:
    """The most bytes that an entry takes in etcd; names of Kubernetes are plain ASCII."""
    names = len(entry.pod_uid) + len(entry.namespace) + len(entry.pod) + len(entry.container)
    ids = len(entry.cpus) + len(entry.mems) + sum(len(one.numa_nodes) for one in entry.memory)
    if entry.grants:
        ids += len(entry.cpus) + 2 * len(entry.grants) + 4
    size = _ENTRY_BYTES + names + _BLOCK_BYTES * len(entry.memory) + _ID_BYTES * ids
    return size + _moving_bytes(entry)


def _moving_bytes(entry: ContainerAssignment) -> int:
    """The most bytes that a move takes, from when it begins."""
    if entry.moving is None:
        return _MOVED_BYTES if entry.moved_at else 0
    names = len(entry.moving.namespace or "") + len(entry.moving.pod or "")
    ids = len(entry.moving.leaving) + len(entry.moving.leaving_mems)
    return _MOVED_BYTES + _MOVING_BYTES + names + _ID_BYTES * ids


def refusal_bytes(refusal: Refusal) -> int:
    """The most bytes that a refusal takes in etcd."""
    names = len(refusal.pod_uid) + len(refusal.namespace) + len(refusal.pod)
    escaped = 5 * sum(map(refusal.message.count, _ESCAPED))
    message = len(json.dumps(refusal.message)) + escaped
    names += len(refusal.requested or "") + len("requested") if refusal.requested else 0
    return _REFUSAL_BYTES + names + len(refusal.container or "") + len(refusal.reason) + message
