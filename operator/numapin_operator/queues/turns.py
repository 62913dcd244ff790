"""A queue in which each of several groups has its turn, however many of one wait. Does no I/O."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

T = TypeVar("T")

REMEMBERED_GROUPS: Final = 1000


class Turns(Generic[T]):
    """What waits, by group: it is the turn of the group that was served longest ago.

    A group that was not served lately comes first; the items of a group keep their order.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}
        """By group; none is empty."""
        self._served: dict[str, int] = {}
        """When each group was served, as a number that grows; the latest last."""
        self._takes = 0
        self._count = 0

    def __len__(self) -> int:
        """How many wait."""
        return self._count

    def __iter__(self) -> Iterator[T]:
        """All that wait, by group."""
        for items in self._waiting.values():
            yield from items

    def add(self, group: str, item: T) -> None:
        """Queue an item as the last one of its group."""
        self._waiting.setdefault(group, deque()).append(item)
        self._count += 1

    def take(self, is_due: Callable[[T], bool] = lambda _: True) -> T | None:
        """Remove the item whose turn it is, of those that are due; None if none is."""
        for group in sorted(self._waiting, key=lambda one: self._served.get(one, 0)):
            items = self._waiting[group]
            for item in items:
                if is_due(item):
                    items.remove(item)
                    self._removed(group)
                    self._note_served(group)
                    return item
        return None

    def drop(self) -> T:
        """Remove the last item of the group of which most wait; there must be one."""
        group = max(self._waiting, key=lambda one: len(self._waiting[one]))
        item = self._waiting[group].pop()
        self._removed(group)
        return item

    def clear(self) -> None:
        """Forget all that wait."""
        self._waiting.clear()
        self._count = 0

    def _removed(self, group: str) -> None:
        self._count -= 1
        if not self._waiting[group]:
            del self._waiting[group]

    def _note_served(self, group: str) -> None:
        self._takes += 1
        self._served.pop(group, None)
        self._served[group] = self._takes
        if len(self._served) > REMEMBERED_GROUPS:
            del self._served[next(iter(self._served))]
