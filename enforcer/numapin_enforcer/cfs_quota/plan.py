"""Pure: which CFS limits are lifted, which are given back, and what must be remembered for that."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from numapin_enforcer.cgroups.naming import Kind, Layout
from numapin_enforcer.cgroups.tree import Quota, Step, Write, parent
from numapin_enforcer.plan.desired import Desired


@dataclass(frozen=True, slots=True)
class QuotaPlan:
    """What to remember before the first write, the writes, and what to remember after the last."""

    remember: Mapping[str, Quota]
    writes: tuple[Write, ...]
    keep: Mapping[str, Quota]


def cgroups_without_limit(wanted: Mapping[str, Desired], layout: Layout) -> tuple[str, ...]:
    """The cgroups whose CFS limit is lifted: containers that own CPUs, and their pods.

    A limit throttles: a container that is alone on 4 CPUs and has a limit of 4 is still stopped
    when its threads' time, counted in slices, goes over. The limits of what is nested in a
    container are its own affair. Parents come first.
    """
    found: dict[str, None] = {}
    for path, want in wanted.items():
        if want.owner and layout.place(path).kind is Kind.CONTAINER:
            found[parent(path)] = None
            found[path] = None
    return tuple(sorted(found))


def plan_quotas(
    free: Collection[str], found: Mapping[str, Quota], remembered: Mapping[str, Quota]
) -> QuotaPlan:
    """How to lift the limits of `free` and to give back what was lifted from anybody else.

    A limit that somebody set meanwhile on a cgroup that is to be given back stays as set. Of
    cgroups that are gone nothing is remembered.

    Args:
        free: the cgroups that are to have no limit.
        found: the limit of each cgroup in `free` or `remembered` that is still there.
        remembered: the limits lifted before.
    """
    remember = {path: limit for path, limit in remembered.items() if path in found}
    writes: list[Write] = []
    for path, limit in found.items():
        if path in free and limit.quota_us is not None:
            remember[path] = limit
            writes.append(Write(path, Quota(None, limit.period_us), Step.GRANT))
    keep = dict(remember)
    for path in sorted(remember, reverse=True):
        if path not in free:
            lifted = keep.pop(path)
            if found[path].quota_us is None:
                writes.append(Write(path, lifted, Step.WIDEN))
    return QuotaPlan(remember, tuple(writes), keep)
