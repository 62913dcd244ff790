"""The objects that are known to be gone. Does no I/O."""

from typing import Final

REMEMBERED: Final = 65_536
"""Of older ones the API server is asked again."""


def node_key(name: str) -> str:
    """What stands for a Node: its name, which no UID can be, and which another Node may get."""
    return f"node/{name}"


class Tombstones:
    """UIDs of Pods that have ended or were deleted, which no other object ever gets; and Nodes.

    That an object is absent from a cache is no proof: the watch may be late.
    """

    def __init__(self, limit: int = REMEMBERED) -> None:
        self._limit = limit
        self._uids: dict[str, None] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._uids

    def add(self, uid: str) -> None:
        """Remember a UID; the oldest one is forgotten if there are too many."""
        self._uids[uid] = None
        if len(self._uids) > self._limit:
            del self._uids[next(iter(self._uids))]

    def discard(self, uid: str) -> None:
        """The object exists after all: it was only out of sight."""
        self._uids.pop(uid, None)
