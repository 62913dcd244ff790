"""The objects of one kind by name in their newest versions.

What a watch delivers and the answers to our own writes overtake each other: the newest version
wins. A whole list shows what was deleted while no watch said so. Does no I/O.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

REMEMBERED_DELETIONS: Final = 4096


class Versioned(Protocol):
    """What the cache can hold; `version` is the resourceVersion as a number.

    Source: Kubernetes API concepts, "Resource versions": they compare as integers within one kind.
    """

    @property
    def name(self) -> str:
        """Unique within the kind."""

    @property
    def version(self) -> int:
        """Higher means newer."""


T = TypeVar("T", bound=Versioned)


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """All objects of a kind at one version."""

    states: tuple[T, ...]
    version: int


class VersionedCache(Mapping[str, T], Generic[T]):
    """Objects by name, fed from sources that may be late or repeat themselves.

    Every method that takes something in returns the names that changed.

    Attributes:
        newest: the highest version that was taken in; 0 if none was.
    """

    def __init__(self) -> None:
        self.newest = 0
        self._objects: dict[str, T] = {}
        self._deleted: dict[str, int] = {}
        self._doubtful: set[str] = set()
        self._listed = -1  # what is older, and absent, was deleted before the last whole list

    def __getitem__(self, name: str) -> T:
        return self._objects[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._objects)

    def __len__(self) -> int:
        return len(self._objects)

    def known(self, name: str) -> T | None:
        """The object, unless it may be of a history that the server has lost."""
        return None if name in self._doubtful else self._objects.get(name)

    def is_newer(self, name: str, version: int) -> bool:
        """Whether that version is newer than the object in the cache, or than its deletion."""
        if name in self._doubtful:
            return True
        present = self._objects.get(name)
        known = present.version if present is not None else self._listed
        return version > max(known, self._deleted.get(name, -1))

    def put(self, state: T) -> set[str]:
        """Take in a state of an object, unless it is not newer than what is known."""
        if not self.is_newer(state.name, state.version):
            return set()
        self.newest = max(self.newest, state.version)
        self._deleted.pop(state.name, None)
        self._doubtful.discard(state.name)
        self._objects[state.name] = state
        return {state.name}

    def amend(self, state: T) -> None:
        """Replace an object by what is known of the same version of it by now."""
        present = self._objects.get(state.name)
        if present is not None and present.version == state.version:
            self._objects[state.name] = state

    def drop(self, name: str, version: int) -> set[str]:
        """Take in that an object was deleted at `version`; a newer object of that name stays."""
        self.newest = max(self.newest, version)
        if self._deleted.get(name, -1) < version:
            self._deleted[name] = version
            if len(self._deleted) > REMEMBERED_DELETIONS:
                del self._deleted[next(iter(self._deleted))]
        present = self._objects.get(name)
        if present is None or (present.version > version and name not in self._doubtful):
            return set()
        del self._objects[name]
        self._doubtful.discard(name)
        return {name}

    def replace(self, listed: Listed[T]) -> set[str]:
        """Take in a whole list: an object that is older and not in it was deleted."""
        self.newest = max(self.newest, listed.version)
        states = {state.name: state for state in listed.states}
        missing = [name for name in self._objects if name not in states]
        changed: set[str] = set()
        for name in missing:
            changed |= self.drop(name, listed.version)
        for state in states.values():
            changed |= self.put(state)
        self._listed = max(self._listed, listed.version)
        return changed

    def start_over(self) -> None:
        """The server has returned to an older state: what comes next counts, however old it is.

        Until then the objects stay, so that none of them seems to be absent.
        """
        self._doubtful = set(self._objects)
        self._deleted.clear()
        self.newest, self._listed = 0, -1
