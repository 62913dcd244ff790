"""How long pods take from their binding until their CPUs are in force."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_daemon.clock import Clock
from numapin_daemon.telemetry.meter import Meter
from numapin_operator.placement import PodView
from numapin_operator.telemetry.table import BOUND_TO_IN_FORCE, BOUND_TO_WRITTEN

MOST_PODS: Final = 10_000
"""Pods that are followed at once; beyond that the one followed longest is given up."""


@dataclass(slots=True)
class _Path:
    """One pod on its way; `waits` names the exclusive containers that are not in force yet."""

    bound_at: float
    node: str
    waits: frozenset[str] = frozenset()


class PodPaths:
    """Follows pods that were bound while this operator leads."""

    def __init__(self, meter: Meter, clock: Clock) -> None:
        self._meter, self._clock = meter, clock
        self._paths: dict[str, _Path] = {}
        self._written: dict[str, set[str]] = {}
        """The pods of each node that were written and are not in force yet."""

    def bound(self, pod: PodView) -> None:
        """A pod was bound that was not known before."""
        ends = pod.terminal or pod.deleting
        if ends or not any(one.whole_cpus for one in pod.containers):
            return
        if len(self._paths) >= MOST_PODS:
            self.gone(next(iter(self._paths)))
        self._paths[pod.uid] = _Path(self._clock.monotonic(), pod.node)

    def gone(self, uid: str) -> None:
        """A pod has ended, or is not followed any more."""
        path = self._paths.pop(uid, None)
        if path is not None and uid in (written := self._written.get(path.node, set())):
            written.discard(uid)
            if not written:
                del self._written[path.node]

    def written(self, node: str, spec: NodeAssignmentSpec) -> None:
        """A node's assignment was written."""
        names: dict[str, set[str]] = {}
        for one in spec.containers:
            if one.exclusive and one.pod_uid in self._paths:
                names.setdefault(one.pod_uid, set()).add(one.container)
        for uid, containers in names.items():
            path = self._paths[uid]
            if not path.waits:
                path.waits = frozenset(containers)
                self._written.setdefault(node, set()).add(uid)
                passed_seconds = self._clock.monotonic() - path.bound_at
                self._meter.observe(BOUND_TO_WRITTEN, passed_seconds)
        for refusal in spec.refused:
            self.gone(refusal.pod_uid)

    def reported(self, assignment: Mapping[str, Any]) -> None:
        """The API server has sent a NodeAssignment, whose status may be any JSON value."""
        written = self._written.get(assignment["metadata"]["name"])
        if not written:
            return
        exclusive = _exclusive(assignment.get("status"))
        for uid in tuple(written):
            path = self._paths[uid]
            path.waits = path.waits - {name for pod, name in exclusive if pod == uid}
            if not path.waits:
                passed_seconds = self._clock.monotonic() - path.bound_at
                self._meter.observe(BOUND_TO_IN_FORCE, passed_seconds)
                self.gone(uid)


def _exclusive(status: Any) -> Collection[tuple[str, str]]:
    """The pod's UID and the name of each container that a status reports exclusive."""
    containers = status.get("containers") if isinstance(status, Mapping) else None
    return {
        (str(one.get("podUID")), str(one.get("container")))
        for one in (containers if isinstance(containers, list) else ())
        if isinstance(one, Mapping) and one.get("exclusive") is True
    }
