"""Which CFS limits are removed, which are restored, and what must be saved for that.

Does no I/O.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from numapin_enforcer.cgroups.naming import CgroupNaming, Kind
from numapin_enforcer.cgroups.tree import parent
from numapin_enforcer.cgroups.write import Quota, Step, Write
from numapin_enforcer.plan.containment import Desired

NO_OTHERS: Final[Mapping[str, bool]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class UnlimitedCgroups:
    """The cgroups that must have no limit.

    Attributes:
        paths: exclusive containers and their pods.
        others: the containers beside exclusive ones; see `plan_quotas`.
        may_be_resized: whether a cgroup that is not in `paths` any more may have left it by a
            resize, so that the kubelet writes a newer limit.
    """

    paths: tuple[str, ...] = ()
    others: Mapping[str, bool] = field(default_factory=lambda: NO_OTHERS)
    may_be_resized: bool = False


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
    limits, and so does a container whose CPUs a DRA driver has given. Parents come first.
    """
    found: dict[str, None] = {}
    for path, want in desired.items():
        container = want.container if want.exclusive else None
        if container and not container.claimed and naming.parse(path).kind is Kind.CONTAINER:
            found[parent(path)] = None
            found[path] = None
    return tuple(sorted(found))


def other_containers(
    paths: Iterable[str],
    unlimited: Collection[str],
    naming: CgroupNaming,
    names: Mapping[str, str],
) -> dict[str, bool]:
    """The containers beside exclusive ones; whether each is known to be no sandbox.

    Args:
        paths: cgroups, among them all containers of pods with exclusive ones.
        unlimited: exclusive containers and their pods.
        naming: how to read the paths.
        names: container id to container name; a sandbox's is empty.
    """
    found: dict[str, bool] = {}
    exclusive = set(unlimited)
    for path in paths if exclusive else ():
        if parent(path) not in exclusive or path in exclusive:
            continue
        parsed = naming.parse(path)
        if parsed.kind is Kind.CONTAINER and names.get(parsed.container_id) != "":
            found[path] = parsed.container_id in names
    return found


def plan_quotas(
    unlimited: Collection[str],
    found: Mapping[str, Quota],
    lifted: Mapping[str, Quota],
    others: Mapping[str, bool] = NO_OTHERS,
    awaited: Collection[str] = (),
) -> QuotaPlan:
    """Remove the limits of `unlimited` and restore those removed from all others.

    A pod's limit stays while one of its other containers has none: with pod-level resources it is
    the only limit that this container has.

    A limit that was set externally after the removal is not overwritten. Limits of cgroups that no
    longer exist are dropped.

    Args:
        unlimited: the cgroups that must have no limit.
        found: the limit of each cgroup in `unlimited`, `lifted` or `others` that exists.
        lifted: the limits removed before.
        others: the containers beside exclusive ones; see `other_containers`.
        awaited: the cgroups to which the kubelet or the runtime may still write a limit: theirs
            is not restored yet.
    """
    unlimited = set(unlimited) - set(_pods_that_limit(found, lifted, others))
    saved = {path: limit for path, limit in lifted.items() if path in found}
    writes: list[Write] = []
    for path, limit in found.items():
        if path in unlimited and limit.quota_us is not None:
            saved[path] = limit
            writes.append(Write(path, Quota(None, limit.period_us), Step.GRANT))
    left = dict(saved)
    for path in sorted(saved, reverse=True):
        is_unlimited = found[path].quota_us is None
        if path not in unlimited and not (is_unlimited and path in awaited):
            limit = left.pop(path)
            if is_unlimited:
                writes.append(Write(path, limit, Step.WIDEN))
    return QuotaPlan(saved, tuple(writes), left)


def _pods_that_limit(
    found: Mapping[str, Quota], lifted: Mapping[str, Quota], others: Mapping[str, bool]
) -> Iterator[str]:
    """The pods whose limit is needed; one that was removed does not come back for a sandbox."""
    for path, is_container in others.items():
        unlimited = path in found and found[path].quota_us is None and path not in lifted
        if unlimited and (is_container or parent(path) not in lifted):
            yield parent(path)
