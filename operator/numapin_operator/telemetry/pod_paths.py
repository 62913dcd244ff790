"""The way of pods from their binding until their CPUs are in force: how long, and as traces."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from numapin_daemon.clock import Clock
from numapin_daemon.logs.lines import POD_UID
from numapin_daemon.telemetry.meter import Meter
from numapin_daemon.telemetry.span import Span, SpanSink
from numapin_operator.placement import PodView
from numapin_operator.telemetry.states import Written
from numapin_operator.telemetry.table import BOUND_TO_IN_FORCE, BOUND_TO_WRITTEN

ROOT: Final = "place pod"
"""The span that contains the others, of the enforcer as well: from the binding to the report."""

MOST_PODS: Final = 10_000
"""Pods that are followed at once; beyond that the one followed longest is given up."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Path:
    """One pod on its way; `waits` names the exclusive containers that are not in force yet."""

    pod: PodView
    bound_at: float
    bound_ns: int
    waits: frozenset[str] = frozenset()


class PodPaths:
    """Follows pods that were bound while this operator leads.

    Attributes:
        sink: takes the spans; None if no traces are wanted.
    """

    def __init__(self, meter: Meter, clock: Clock) -> None:
        self.sink: SpanSink | None = None
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
        now_seconds = self._clock.monotonic()
        self._paths[pod.uid] = _Path(pod, now_seconds, self._clock.unix_ns(now_seconds))

    def gone(self, uid: str) -> None:
        """A pod has ended, or is not followed any more."""
        path = self._paths.pop(uid, None)
        if path is not None and uid in (written := self._written.get(path.pod.node, set())):
            written.discard(uid)
            if not written:
                del self._written[path.pod.node]

    def written(self, done: Written) -> None:
        """A node's assignment was written."""
        names: dict[str, set[str]] = {}
        for one in done.spec.containers:
            if one.exclusive and one.pod_uid in self._paths:
                names.setdefault(one.pod_uid, set()).add(one.container)
        for uid, containers in names.items():
            path = self._paths[uid]
            if not path.waits:
                path.waits = frozenset(containers)
                self._written.setdefault(done.node, set()).add(uid)
                self._meter.observe(BOUND_TO_WRITTEN, done.sent[1] - path.bound_at)
                self._trace_written(path, done)
        for refusal in done.spec.refused:
            self.gone(refusal.pod_uid)

    def waits_on(self, node: str) -> bool:
        """Whether a pod of a node was written and is not in force yet."""
        return node in self._written

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
                now_seconds = self._clock.monotonic()
                self._meter.observe(BOUND_TO_IN_FORCE, now_seconds - path.bound_at)
                self._send(ROOT, path.pod, (path.bound_ns, self._clock.unix_ns(now_seconds)))
                self._log("the CPUs of a pod are in force", path.pod)
                self.gone(uid)

    def _trace_written(self, path: _Path, done: Written) -> None:
        """The steps of one pod up to the write, and a line in the log by which to find them."""
        if self.sink is None:
            return
        policy = done.spec.policy.name if done.spec.policy else ""
        about: dict[str, str | int] = {
            "numapin.generation": done.generation,
            "numapin.policy": policy,
        }
        began_ns, planned_ns, sent_ns, ended_ns = map(
            self._clock.unix_ns, (*done.planned, *done.sent)
        )
        self._send("wait", path.pod, (path.bound_ns, began_ns), about)
        self._send("plan", path.pod, (began_ns, planned_ns), about)
        self._send("write", path.pod, (sent_ns, ended_ns), about)
        self._log("placed a pod", path.pod, policy=policy, generation=done.generation)

    def _log(self, text: str, pod: PodView, **more: str | int) -> None:
        """A line about a step, if traces are wanted."""
        if self.sink is not None:
            name = f"{pod.namespace}/{pod.name}"
            _log.info(text, extra={POD_UID: pod.uid, "pod": name, "node": pod.node, **more})

    def _send(
        self,
        name: str,
        pod: PodView,
        times_ns: tuple[int, int],
        about: Mapping[str, str | int] | None = None,
    ) -> None:
        if self.sink is None:
            return
        begin_ns, end_ns = times_ns
        attributes = {
            "k8s.pod.uid": pod.uid,
            "k8s.pod.name": pod.name,
            "k8s.namespace.name": pod.namespace,
            "k8s.node.name": pod.node,
            **(about or {}),
        }
        is_root = name == ROOT
        self.sink(Span(name, pod.uid, begin_ns, max(begin_ns, end_ns), attributes, is_root))


def _exclusive(status: Any) -> Collection[tuple[str, str]]:
    """The pod's UID and the name of each container that a status reports exclusive."""
    containers = status.get("containers") if isinstance(status, Mapping) else None
    return {
        (str(one.get("podUID")), str(one.get("container")))
        for one in (containers if isinstance(containers, list) else ())
        if isinstance(one, Mapping) and one.get("exclusive") is True
    }
