"""What a node's enforcer does for exclusive CPUs besides cpusets, and whom it confines.

Does no I/O.
"""

from collections.abc import Iterable

from numapin_api.cache import model as cache
from numapin_api.cpupolicy import PodSelection
from numapin_api.nodeassignment import MAX_CONFINED
from numapin_api.schema.plain_assignment import Cache, NodeAssignmentSpec, System
from numapin_api.system import model
from numapin_operator.placement.requests import PodView


def system_of(asked: model.System) -> System | None:
    """What a policy asks, as an assignment has it; None if it leaves everything where it is.

    So an enforcer that does not know the field never hears of it where nobody asks for it.
    """
    return None if asked == model.System() else System.from_wire(asked.to_wire())


def cache_of(asked: cache.Cache) -> Cache | None:
    """The shares that a policy asks for, as `system_of`."""
    return None if asked == cache.Cache() else Cache.from_wire(asked.to_wire())


def confined_pods(
    selection: PodSelection, spec: NodeAssignmentSpec, pods: Iterable[PodView]
) -> tuple[str, ...] | None:
    """UIDs of the pods that run on the reserved CPUs alone; None if there are none.

    Pods that have something assigned keep it for life: they are not confined. Those that there is
    no room for share CPUs.
    """
    if not (names := frozenset(selection.confined_namespaces)):
        return None
    assigned = {one.pod_uid for one in spec.containers}
    found = (pod.uid for pod in pods if pod.namespace in names and pod.uid not in assigned)
    return tuple(sorted(found)[:MAX_CONFINED]) or None
