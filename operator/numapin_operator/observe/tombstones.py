"""The UIDs of objects that are known to be gone. Does no I/O."""

from typing import Final

REMEMBERED: Final = 65_536
"""Of older ones the API server is asked again."""


class Tombstones:
    """UIDs of Pods and Nodes that have ended or were deleted. No other object ever gets their UID.

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
