"""The objects of one source, as small decoded values."""

import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Generic, TypeVar

from numapin_client.resources import Json, Key
from numapin_daemon.logs.log_limit import LogLimit

log = logging.getLogger(__name__)

T = TypeVar("T")
"""A decoded object; never None, which means that there is no object."""


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """An object that was added (`old` is None), changed, or deleted (`new` is None).

    Attributes:
        key: which object.
        old: its value before.
        new: its value now.
        version: the resourceVersion of `new`, or at which the object was seen to be deleted.
    """

    key: Key
    old: T | None
    new: T | None
    version: str = field(default="", compare=False)


class Store(Generic[T]):
    """Decoded objects by key; reports each change of a value."""

    def __init__(self, decode: Callable[[Json], T]) -> None:
        """Start empty.

        Args:
            decode: reduces an object to what is needed, as a value; equal values mean that nothing
                has changed. If it raises, the object stays as it was stored, and that is logged
                once for each object and error.
        """
        self._lines = LogLimit()
        self._decode = decode
        self._items: dict[Key, T] = {}
        self.items: Mapping[Key, T] = MappingProxyType(self._items)

    def put(self, body: Json) -> Change[T] | None:
        """Store an object; None if its value has not changed.

        Values are compared because a server restored from a backup repeats resourceVersions.
        """
        metadata = body["metadata"]
        key = Key(metadata["name"], sys.intern(metadata.get("namespace", "")))
        old = self._items.get(key)
        try:
            new = self._decode(body)
        except Exception as error:
            if (more := self._lines.admit(key, repr(error))) is not None:
                about = {"key": key, **more}
                log.exception("cannot decode an object, its last state is used", extra=about)
            return None
        if old == new:
            return None
        self._items[key] = new
        return Change(key, old, new, metadata.get("resourceVersion", ""))

    def drop(self, key: Key, version: str) -> Change[T] | None:
        """Drop an object that was deleted by this version; None if it was not stored."""
        old = self._items.pop(key, None)
        return None if old is None else Change(key, old, None, version)
