"""Whether any process runs in a cgroup or below it. Does no I/O."""

from collections.abc import Callable
from contextlib import suppress

from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.tree import Tree


def has_processes(tree: Tree, path: str, has_tasks: Callable[[str], bool]) -> bool:
    """Whether a process runs in the cgroup or in one of its descendants in `tree`.

    Args:
        tree: the cgroups as read.
        path: one of them.
        has_tasks: whether a process runs in a cgroup itself. A cgroup for which it raises
            `CgroupError` is gone or cannot be read, and counts as without processes.
    """
    pending = [path]
    while pending:
        one = pending.pop()
        with suppress(CgroupError):
            if has_tasks(one):
                return True
        pending += tree.children.get(one, ())
    return False
