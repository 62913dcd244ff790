"""What is known of the objects of one source, as slim records."""

import sys
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, TypeVar

from numapin_client.resources import Json, Key

T = TypeVar("T")
"""A record; never None, which stands for no record."""


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """An object that came (`old` is None), changed, or went (`new` is None)."""

    key: Key
    old: T | None
    new: T | None


class Store(Generic[T]):
    """Records by key; says what changes, and only that."""

    def __init__(self, decode: Callable[[Json], T]) -> None:
        """Start empty.

        Args:
            decode: keeps of an object what is needed, as a value that compares equal when that is
                the same; the rest is forgotten. It must bear every object that the API server
                takes, since there is nobody to tell but the caller of `run`.
        """
        self._decode = decode
        self._items: dict[Key, T] = {}
        self.items: Mapping[Key, T] = MappingProxyType(self._items)

    def put(self, body: Json) -> Change[T] | None:
        """Take in an object; None when nothing that we keep has changed.

        The resourceVersion does not tell: a server restored from a backup gives it out again.
        """
        metadata = body["metadata"]
        key = Key(metadata["name"], sys.intern(metadata.get("namespace", "")))
        old, new = self._items.get(key), self._decode(body)
        if old == new:
            return None
        self._items[key] = new
        return Change(key, old, new)

    def drop(self, key: Key) -> Change[T] | None:
        """Forget an object; None when it was not known."""
        old = self._items.pop(key, None)
        return None if old is None else Change(key, old, None)

    def keep_only(self, keys: AbstractSet[Key]) -> list[Change[T]]:
        """Forget all but these: what a complete list no longer shows is gone."""
        gone = [self.drop(key) for key in self._items.keys() - keys]
        return [change for change in gone if change is not None]
