"""Which CFS limits are removed, which are restored, and what must be saved for that.

Does no I/O.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from numapin_enforcer.cgroups.naming import CgroupNaming, Kind
from numapin_enforcer.cgroups.tree import parent
from numapin_enforcer.cgroups.write import Quota, Step, Write
from numapin_enforcer.plan.desired import Desired


@dataclass(frozen=True, slots=True)
class QuotaPlan:
    """What to write, and which limits to save before the first write and after the last."""

    save_before: Mapping[str, Quota]
    writes: tuple[Write, ...]
    save_after: Mapping[str, Quota]


def cgroups_without_limit(desired: Mapping[str, Desired], naming: CgroupNaming) -> tuple[str, ...]:
    """The cgroups whose CFS limit is removed: exclusive containers and their pods.

    A limit throttles: a container that has 4 CPUs to itself and a limit of 4 is still stopped when
    the time of its threads, counted in slices, exceeds it. Cgroups nested in a container keep their
    limits. Parents come first.
    """
    found: dict[str, None] = {}
    for path, want in desired.items():
        if want.exclusive_container and naming.parse(path).kind is Kind.CONTAINER:
            found[parent(path)] = None
            found[path] = None
    return tuple(sorted(found))


def plan_quotas(
    unlimited: Collection[str], found: Mapping[str, Quota], lifted: Mapping[str, Quota]
) -> QuotaPlan:
    """Remove the limits of `unlimited` and restore those removed from all others.

    A limit that was set externally after the removal is not overwritten. Limits of cgroups that no
    longer exist are dropped.

    Args:
        unlimited: the cgroups that must have no limit.
        found: the limit of each cgroup in `unlimited` or `lifted` that exists.
        lifted: the limits removed before.
    """
    saved = {path: limit for path, limit in lifted.items() if path in found}
    writes: list[Write] = []
    for path, limit in found.items():
        if path in unlimited and limit.quota_us is not None:
            saved[path] = limit
            writes.append(Write(path, Quota(None, limit.period_us), Step.GRANT))
    left = dict(saved)
    for path in sorted(saved, reverse=True):
        if path not in unlimited:
            limit = left.pop(path)
            if found[path].quota_us is None:
                writes.append(Write(path, limit, Step.WIDEN))
    return QuotaPlan(saved, tuple(writes), left)
