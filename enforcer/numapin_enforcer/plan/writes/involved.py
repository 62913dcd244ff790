"""Which part of a tree a plan needs to look at. Does no I/O."""

from collections.abc import Iterable, Iterator, Mapping

from numapin_enforcer.cgroups.tree import Tree, differing
from numapin_enforcer.plan.containment import Desired

Settled = tuple[Tree, Mapping[str, Desired]]
"""A tree that needed no write, and what its cgroups had to have."""


def involved(tree: Tree, wanted: Mapping[str, Desired], settled: Settled) -> Tree:
    """The part of `tree` for which a plan has the same writes as for all of it.

    Only what differs from `settled` can need a write: these cgroups, their descendants (which may
    inherit), and their ancestors. The whole tree counts if an exclusive container or the root is
    among them, because any cgroup may have the CPUs that it will have.
    """
    before, had = settled
    if before.root != tree.root or before.version != tree.version:
        return tree
    changed = {*differing(tree.cgroups, before.cgroups), *differing(wanted, had)}
    changed &= tree.cgroups.keys()
    for path in changed:
        if path == tree.root or wanted[path].exclusive or _was_exclusive(path, had):
            return tree
    return _part(tree, changed)


def _was_exclusive(path: str, had: Mapping[str, Desired]) -> bool:
    return path in had and had[path].exclusive


def _part(tree: Tree, paths: Iterable[str]) -> Tree:
    """The tree of these cgroups with their descendants and ancestors, in the order of `tree`."""
    kept = {tree.root}
    for path in paths:
        kept.update(_descendants(tree, path))
        above = path
        while above != tree.root:
            kept.add(above)
            above = tree.parents[above]
    return Tree(
        tree.version, tree.root, {path: tree.cgroups[path] for path in tree.cgroups if path in kept}
    )


def _descendants(tree: Tree, path: str) -> Iterator[str]:
    for child in tree.children[path]:
        yield child
        yield from _descendants(tree, child)
