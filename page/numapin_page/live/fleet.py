"""The lines of all nodes as JSON text, made again for what changed, and who is told."""

import asyncio
import json
import logging
from collections.abc import Iterable
from typing import Any, Final, NoReturn

from numapin_cli.live.node_state import NodeState
from numapin_daemon.slices import Slices
from numapin_page.live.parts import Parts
from numapin_page.views.node_row import Beside, node_row

log = logging.getLogger(__name__)

ROWS: Final = 500
"""Lines in one message."""

COALESCED_SECONDS: Final = 0.03
"""Changes that follow one another this closely are sent together."""


class Subscriber:
    """A reader of the lines: what it has not been sent yet is a set of names, however slow it is.

    Attributes:
        pending: the nodes whose lines it lacks.
        woken: set when there is something to send.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.pending = dict.fromkeys(names)
        self.woken = asyncio.Event()
        self.woken.set()

    def tell(self, names: Iterable[str]) -> None:
        """Note changes."""
        self.pending.update(dict.fromkeys(names))
        self.woken.set()

    def taken(self) -> list[str]:
        """Some of the nodes to send, in the order in which they changed."""
        names = list(self.pending)[:ROWS]
        for name in names:
            del self.pending[name]
        return names


class Fleet:
    """The lines of all nodes.

    Attributes:
        rows: the line of each node as JSON, as far as they have been made.
    """

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}
        self._dirty: dict[str, None] = {}
        self._changed = asyncio.Event()
        self._subscribers: set[Subscriber] = set()
        self._version = 0

    def changed(self, names: Iterable[str]) -> None:
        """Note that something about nodes changed."""
        self._dirty.update(dict.fromkeys(names))
        self._changed.set()

    async def run(self, parts: Parts) -> NoReturn:
        """Make the lines again after changes until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self.refresh(parts)

    async def refresh(self, parts: Parts) -> None:
        """Make the lines again of all that changed; other tasks get turns in between."""
        slices, made = Slices(), list[str]()
        known = parts.names()
        while self._dirty:
            name = next(iter(self._dirty))
            del self._dirty[name]
            self._make(parts, name, is_there=name in known)
            made.append(name)
            if slices.over():
                self._tell(made)
                made = []
                await slices.rest()
                known = parts.names() if self._changed.is_set() else known
        self._tell(made)

    def subscribe(self) -> Subscriber:
        """A new reader, which lacks every line."""
        one = Subscriber(self.rows)
        self._subscribers.add(one)
        return one

    def unsubscribe(self, one: Subscriber) -> None:
        """Forget a reader."""
        self._subscribers.discard(one)

    def wake(self) -> None:
        """Have all readers look, although no line changed."""
        self._tell(())

    @property
    def readers(self) -> int:
        """How many there are."""
        return len(self._subscribers)

    def message(self, names: Iterable[str]) -> str:
        """The lines of nodes, and which of them are gone, as JSON."""
        listed = list(names)
        rows = ",".join(self.rows[name] for name in listed if name in self.rows)
        gone = json.dumps([name for name in listed if name not in self.rows])
        return f'{{"rows":[{rows}],"gone":{gone}}}'

    def _make(self, parts: Parts, name: str, *, is_there: bool) -> None:
        if not is_there:
            self.rows.pop(name, None)
            return
        self._version += 1
        row = _row(parts, name) | {"version": self._version}
        self.rows[name] = json.dumps(row, separators=(",", ":"))

    def _tell(self, names: Iterable[str]) -> None:
        for one in self._subscribers:
            one.tell(names)


def _row(parts: Parts, name: str) -> dict[str, Any]:
    """The line of a node; of one whose objects cannot be shown, a line that says so."""
    try:
        state = parts.state(name)
        return node_row(state, parts.beside(name, state.policy))
    except Exception as error:  # what one node reports must not stop the others
        log.exception("cannot show a node", extra={"node": name})
        return node_row(NodeState(name, problem=f"cannot be shown: {error!r}"), Beside())
