"""Plays many histories that begin alike: what two have in common is played once.

A node between two actions is saved as the bytes that pickle makes of it, and made again from them.
"""

import functools
import io
import pickle
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_campaigns.histories.actions import Assign, History, Pass
from numapin_campaigns.histories.node import Node
from numapin_enforcer.cgroups.naming import CgroupNaming

_CONSTANT = frozenset(
    (History, Topology, Assign, NodeAssignmentSpec, CgroupNaming, MappingProxyType)
)
"""What never changes: nodes that are made again have the same objects."""

_VALUES = frozenset((CpuSet, MemSet, str))
"""The same, where equal objects may become one."""

_CACHED = type(functools.cache(len))


class Replay:
    """Plays histories, fastest those that follow one another in a search."""

    def __init__(self) -> None:
        self._last: History | None = None
        """The history that was played last."""
        self._saved: list[tuple[int, bytes]] = []
        """Nodes after so many of these actions, the longest part last."""
        self._objects = _Objects()
        self._without_runtime: set[History] = set()
        """Histories in which nothing would have been left to the runtime."""

    def broken_law(self, history: History) -> Exception | None:
        """What a history breaks: a law, or the program itself; None if all holds.

        One in which the runtime has nothing to write counts as played with the one without it, if
        that one was played before.
        """
        other = _without_runtime(history)
        if other in self._without_runtime:
            return None
        try:
            node = self.play(history)
            if other is None and not node.may_leave:
                self._without_runtime.add(history)
            node.end()
        except Exception as error:  # noqa: BLE001 (an error of any kind ends the enforcer)
            return error
        return None

    def play(self, history: History) -> Node:
        """The node after the last action."""
        alike = self._alike(history)
        while self._saved and self._saved[-1][0] > alike:
            self._saved.pop()
        done, saved = self._saved[-1] if self._saved else (0, b"")
        node = self._objects.load(saved) if saved else Node(replace(history, actions=()))
        for action in history.actions[done:alike]:
            node.play(action)
        if alike > done:
            self._saved.append((alike, self._objects.save(node)))
        for action in history.actions[alike:]:
            node.play(action)
        return node

    def _alike(self, history: History) -> int:
        """How many actions it has in common with the last history, which it becomes."""
        last, self._last = self._last, history
        if last is None or replace(last, actions=()) != replace(history, actions=()):
            return 0
        pairs = enumerate(zip(last.actions, history.actions, strict=False))
        shorter = min(len(last.actions), len(history.actions))
        return next((index for index, (one, other) in pairs if one != other), shorter)


def _without_runtime(history: History) -> History | None:
    """The history in which the runtime does not write what containers gain in the last pass.

    None if it does not in this one.
    """
    *before, last = history.actions
    if not (isinstance(last, Pass) and last.by_runtime):
        return None
    return replace(history, actions=(*before, replace(last, by_runtime=False)))


class _Objects:
    """Saves nodes and makes them again; constants are numbers in the bytes."""

    def __init__(self) -> None:
        self._objects: list[object] = []
        self._numbers: dict[object, int] = {}

    def save(self, node: Node) -> bytes:
        """The bytes of a node between two actions."""
        file = io.BytesIO()
        pickler = _Pickler(file, pickle.HIGHEST_PROTOCOL)
        pickler.number = self._number
        pickler.dump(node)
        return file.getvalue()

    def load(self, saved: bytes) -> Node:
        """A node that has these bytes."""
        loader = _Unpickler(io.BytesIO(saved))
        loader.objects = self._objects
        node = loader.load()
        assert isinstance(node, Node)
        return node

    def _number(self, key: object, one: object) -> int:
        number = self._numbers.setdefault(key, len(self._objects))
        if number == len(self._objects):
            self._objects.append(one)
        return number


class _Pickler(pickle.Pickler):
    number: Callable[[object, object], int]

    def persistent_id(self, one: object) -> int | None:
        kind = type(one)
        if kind in _VALUES:
            return self.number(one, one)
        return self.number(id(one), one) if kind in _CONSTANT else None

    def reducer_override(self, one: object) -> Any:
        """The enforcer caches a function without arguments: it is called again."""
        if isinstance(one, _CACHED):
            return functools.cache, (one.__wrapped__,)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    objects: list[object]

    def persistent_load(self, number: int) -> object:
        return self.objects[number]
