"""Moves CPUs or NUMA nodes through a tree of cgroups, write by write, in a safe order."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from numapin_enforcer.cgroups.tree import Tree, Version

Masks = Mapping[str, int]
"""A set for each cgroup of the tree, as a bit mask; every parent contains its children's."""


class Effect(NamedTuple):
    """What a cgroup could use before and after a write to one of its ancestors (v2)."""

    path: str
    before: int
    after: int


class Change(NamedTuple):
    """One write: the set asked for, and what the cgroup could use before.

    `unbound` is what the cgroup asked for and could not use, which its parent may give it (v2);
    `inherited` lists the descendants whose effective set changes with this one.
    """

    path: str
    asked: int
    before: int
    unbound: int = 0
    inherited: tuple[Effect, ...] = ()

    @property
    def gains(self) -> int:
        """What the cgroup may use from this write on."""
        return self.asked & ~self.before

    @property
    def leaves(self) -> int:
        """What the cgroup may not use any more from this write on."""
        return self.before & ~self.asked


class Ledger:
    """What was asked for and what is effective in every cgroup, after the changes made so far.

    On v1 both are the same, and the kernel refuses a child that is not inside its parent. On v2 a
    child has what it asked for and its parent has; if that is empty, or it asked for nothing, it
    has all that its parent has. Source: Documentation/admin-guide/cgroup-v2.rst, "Cpuset".
    """

    def __init__(
        self, tree: Tree, asked: Masks, effective: Masks, limit: int | None = None
    ) -> None:
        """Args: beyond `limit` no cgroup may ask for anything; by default, what the root has."""
        self._tree = tree
        self._inherits = tree.version is Version.V2
        self._asked = dict(asked)
        self.effective = dict(effective)
        self._limit = self.effective[tree.root] if limit is None else limit

    def move(self, target: Masks) -> tuple[list[Change], list[Change]]:
        """Take every cgroup to its `target`; parents contain their children at every instant.

        First all that gains, parents first: a cgroup with children goes to what it has and what it
        will have together. Then all that leaves, children first. No cgroup gains anything on the
        way that it has not afterwards, not even what an earlier change took from it: on v2,
        children that would inherit more are first bound to what they have.

        Returns:
            The changes that gain, and those that leave (or do both), each in order.
        """
        beyond = (asked & ~self._limit for asked in self._asked.values())
        if target == self.effective and not any(beyond):
            return [], []
        before = dict(self.effective)
        gaining = list(self._gain(before, target))
        self._limit |= target[self._tree.root]
        return gaining, list(self._leave(target))

    def _gain(self, before: Masks, target: Masks) -> Iterator[Change]:
        for path in before:
            bound = self.effective[path] | target[path]
            straight = not self._tree.children[path] and before[path] & ~target[path]
            if bound != self.effective[path] and not straight:
                for child in self._outgrowing(path, bound, target):
                    yield self._set(child, self.effective[child])
                yield self._set(path, bound)

    def _outgrowing(self, path: str, effective: int, target: Masks) -> list[str]:
        """The descendants of `path` that would gain what they have not afterwards (v2 only)."""
        found: list[str] = []
        for child in self._tree.children[path] if self._inherits else ():
            inherited = _clamp(self._asked[child], effective)
            if inherited & ~(self.effective[child] | target[child]):
                found.append(child)
            else:
                found += self._outgrowing(child, inherited, target)
        return found

    def _leave(self, target: Masks) -> Iterator[Change]:
        for path in reversed(list(self.effective)):
            if target[path] and not self._arrives(path, target):
                yield self._set(path, target[path])

    def _arrives(self, path: str, target: Masks) -> bool:
        """Whether the cgroup has its target without a write, once its parent has its target.

        False if it has it only because none of what it asked for is left, or if a CPU that comes
        online would be added to it.
        """
        if not self._inherits or path == self._tree.root:
            return self.effective[path] == target[path]
        asked = self._asked[path]
        parent = target[self._tree.parents[path]]
        return (asked & parent if asked else parent) == target[path] and not asked & ~self._limit

    def _set(self, path: str, asked: int) -> Change:
        before = self.effective[path]
        unbound = (self._asked[path] or self._limit) & ~before if self._inherits else 0
        self._asked[path] = asked
        self.effective[path] = asked
        children = self._tree.children[path] if self._inherits else ()
        return Change(path, asked, before, unbound, tuple(self._pass_on(children, asked)))

    def _pass_on(self, children: Iterable[str], parent_effective: int) -> Iterator[Effect]:
        for child in children:
            effective = _clamp(self._asked[child], parent_effective)
            if effective != self.effective[child]:
                yield Effect(child, self.effective[child], effective)
                self.effective[child] = effective
                yield from self._pass_on(self._tree.children[child], effective)


def _clamp(asked: int, parent: int) -> int:
    """The effective set on v2 of a child that asked for `asked`."""
    return asked & parent or parent
