"""What is wrong on the node, as obstacles: those that a person must repair, and those retried.

Does no I/O.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from numapin_api.conditions.reasons import Obstacle, Reason
from numapin_api.quantity import plural
from numapin_api.text import first_texts
from numapin_enforcer.cgroups.apply import Failure
from numapin_enforcer.cgroups.errors import CgroupReadOnlyError
from numapin_enforcer.cgroups.memory.use import MemoryNotBoundError
from numapin_enforcer.cgroups.write import Write
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.status.conditions import SHOWN
from numapin_enforcer.status.in_force.lack import Lack

PASSES_TO_STALL = 5
"""After so many failed passes in a row the node is reported stalled."""


def cgroup_obstacles(
    failures: Sequence[Failure], failed_passes: int
) -> tuple[list[Obstacle], list[Obstacle]]:
    """Refused writes as obstacles: those that a person must repair, and those that are retried."""
    if not failures:
        return [], []
    first = failures[0].error
    obstacle = Obstacle(first.reason, _shown([failure.error for failure in failures]))
    is_stalled = isinstance(first, CgroupReadOnlyError) or failed_passes >= PASSES_TO_STALL
    return ([obstacle], []) if is_stalled else ([], [obstacle])


def _shown(problems: Sequence[object]) -> str:
    return first_texts([*map(str, problems)], SHOWN, "; ")


def lack_obstacles(
    lacks: Sequence[Lack], failed_passes: int
) -> tuple[list[Obstacle], list[Obstacle]]:
    """What the kernel does not have, as one obstacle: stalled or retried, as `cgroup_obstacles`."""
    if not lacks:
        return [], []
    first = next((one for one in lacks if one.needs_help), lacks[0])
    shown = _shown([first, *(one for one in lacks if one is not first)])
    obstacle = Obstacle(first.reason, f"not as in the spec: {shown}")
    is_stalled = first.needs_help or failed_passes >= PASSES_TO_STALL
    return ([obstacle], []) if is_stalled else ([], [obstacle])


def move_obstacles(
    failures: Sequence[Failure], desired: Mapping[str, Desired], failed_passes: int
) -> tuple[list[Obstacle], list[Obstacle]]:
    """Moves of memory that were not made: stalled or retried, as `cgroup_obstacles`.

    Args:
        failures: of the last batch.
        desired: what each cgroup must have, with the container that it belongs to.
        failed_passes: so many passes in a row have failed.
    """
    unfit = [
        _not_bound(one.write.path, one.error, desired)
        for one in failures
        if isinstance(one.error, MemoryNotBoundError)
    ]
    refused = [one for one in failures if not isinstance(one.error, MemoryNotBoundError)]
    stalled, working = cgroup_obstacles(refused, failed_passes)
    if unfit:
        working = [*working, Obstacle(Reason.MEMORY_NOT_BOUND, _shown(unfit))]
    return stalled, working


def _not_bound(path: str, error: MemoryNotBoundError, desired: Mapping[str, Desired]) -> str:
    one = desired[path].container if path in desired else None
    subject = f"container {one.namespace}/{one.pod}/{one.container}" if one else f"cgroup {path}"
    return f"{subject} is not bound to NUMA nodes {error.mems}: {error.why}"


def moving(writes: Iterable[Write]) -> list[Obstacle]:
    """Memory that is being moved."""
    paths = {write.path for write in writes}
    if not paths:
        return []
    return [Obstacle(Reason.APPLYING, f"memory of {plural(len(paths), 'cgroup')} is being moved")]


def stale_in_runtime(cgroups: Collection[str]) -> list[Obstacle]:
    """Containers that the runtime may still give CPUs that they must not have."""
    if not cgroups:
        return []
    count = plural(len(cgroups), "container")
    return [Obstacle(Reason.APPLYING, f"the runtime is being updated with the CPUs of {count}")]


def unnamed(ids: Collection[str]) -> list[Obstacle]:
    """Containers of pods of the spec that may be exclusive ones, and that have no name yet."""
    if not ids:
        return []
    count = plural(len(ids), "container")
    message = f"the container runtime is slow to name {count}, which share CPUs until it does"
    return [Obstacle(Reason.APPLYING, message)]
