"""When another container had a CPU that one had to itself, by a recording."""

from collections.abc import Sequence

from numapin_api.cpuset import CpuSet
from numapin_campaigns.recording.recording import Change

FOREVER = float("inf")


def seconds_shared_each_time(
    owner: Sequence[Change], other: Sequence[Change], own: CpuSet
) -> list[float]:
    """How long each time `owner` had exactly `own` and `other` had one of these CPUs too.

    A time that lasts to the end of the recording counts as infinite.

    Not counted: a time that begins when `owner` loses CPUs that it shared, and ends when it gets
    some back. `owner` was exclusive neither before nor after. A runtime does that to a container
    that has left the exclusive ones, when an update that was sent before writes the older set.
    """
    found, began, own_began = list[float](), 0.0, False
    has = dict[bool, CpuSet]()
    shared = False
    for at, is_owner, cpus in _in_order(owner, other):
        has[is_owner] = cpus
        now = has.get(True) == own and bool(has.get(False, CpuSet()) & own)
        if now and not shared:
            began, own_began = at, is_owner
        elif shared and not now and not (own_began and is_owner and cpus > own):
            found.append(at - began)
        shared = now
    return [*found, FOREVER] if shared else found


def _in_order(owner: Sequence[Change], other: Sequence[Change]) -> list[tuple[float, bool, CpuSet]]:
    changes = [(one.at, True, one.cpus) for one in owner]
    changes += [(one.at, False, one.cpus) for one in other]
    return sorted(changes, key=lambda change: change[0])
