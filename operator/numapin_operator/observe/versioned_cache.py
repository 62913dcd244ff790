"""Objects of one kind by name: the newest state of each wins, and no ghost stays."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Generic, Protocol, TypeVar

REMEMBERED_DELETIONS: Final = 4096


class Versioned(Protocol):
    """What a mirror can hold; `version` is the resourceVersion as a number.

    Source: Kubernetes API concepts, "Resource versions": they compare as integers within one kind.
    """

    @property
    def name(self) -> str:
        """Unique within the kind."""

    @property
    def version(self) -> int:
        """Higher means newer."""


T = TypeVar("T", bound=Versioned)


class Mirror(Mapping[str, T], Generic[T]):
    """Objects by name, fed from several sources that may be late or repeat themselves.

    Watch events, answers to our own writes and whole lists all go in; whichever is newest stands.
    Every method returns the names that changed.
    """

    def __init__(self) -> None:
        self._held: dict[str, T] = {}
        self._deleted: dict[str, int] = {}

    def __getitem__(self, name: str) -> T:
        return self._held[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def is_news(self, name: str, version: int) -> bool:
        """Whether a state of that version is newer than the one held, or the object's end."""
        held = self._held.get(name)
        known = max(held.version if held is not None else -1, self._deleted.get(name, -1))
        return version > known

    def put(self, seen: T) -> set[str]:
        """Take in a state of an object; what is older than the state held, or its end, is not."""
        if not self.is_news(seen.name, seen.version):
            return set()
        self._deleted.pop(seen.name, None)
        self._held[seen.name] = seen
        return {seen.name}

    def drop(self, name: str, version: int) -> set[str]:
        """Take in an object's end, seen at `version`; a newer object of that name stays."""
        if self._deleted.get(name, -1) < version:
            self._deleted[name] = version
            if len(self._deleted) > REMEMBERED_DELETIONS:
                del self._deleted[next(iter(self._deleted))]
        held = self._held.get(name)
        if held is None or held.version > version:
            return set()
        del self._held[name]
        return {name}

    def settle(self, listed: Iterable[T], version: int) -> set[str]:
        """Take in all there was at `version`: what is older and not in the list has gone."""
        states = {state.name: state for state in listed}
        gone = [name for name in self._held if name not in states]
        changed: set[str] = set()
        for name in gone:
            changed |= self.drop(name, version)
        for state in states.values():
            changed |= self.put(state)
        return changed
