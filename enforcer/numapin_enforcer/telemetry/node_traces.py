"""The enforcer's part of the trace of each pod: accepted, enforced, reported."""

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.telemetry.span import Span, SpanSink
from numapin_enforcer.assignment.log_fields import log_fields
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.status.report import Report
from numapin_enforcer.telemetry.passes import InForce

LOG: Final = logging.getLogger(__name__)

_LINES: Final = {
    "accept": "accepted the CPUs of a pod",
    "enforce": "the kernel has the CPUs of a container",
    "report": "reported a container exclusive",
}
"""What is logged with each span."""


class NodeTraces:
    """Sends a span, and logs a line, for each step of each exclusive container.

    Belongs to the loop.
    """

    def __init__(
        self,
        sink: SpanSink,
        node: str,
        known: NodeAssignmentSpec | None,
        clock: Clock | None = None,
    ) -> None:
        """Send nothing yet.

        Args:
            sink: takes the spans.
            node: this node's name.
            known: what was accepted before this process began, and has no spans of it.
            clock: the machine's clock by default.
        """
        self._sink, self._node, self._clock = sink, node, clock or SystemClock()
        self._spec = known
        self._accepted = _pods(known)
        self._unreported: dict[tuple[str, str], InForce] = {}
        self._generation = 0

    def passed(self, done: Pass, in_force: Sequence[InForce]) -> None:
        """A pass has ended, which brought these containers into force."""
        if done.spec is not None and done.spec is not self._spec:
            self._generation = done.generation
            pods = _pods(done.spec)
            for uid in pods.keys() - self._accepted.keys():
                self._send("accept", pods[uid], (done.received_seconds, done.began_seconds))
            self._spec, self._accepted = done.spec, pods
            self._unreported = {key: one for key, one in self._unreported.items() if key[0] in pods}
        for one in in_force:
            container = one.container
            self._send("enforce", container, (one.since_seconds, one.until_seconds))
            self._unreported[container.key] = one

    def reported(self, report: Report) -> None:
        """The API server has taken a status."""
        if not self._unreported:
            return
        now_seconds = self._clock.monotonic()
        for status in report.content.containers:
            key = status.key
            if status.exclusive and (one := self._unreported.pop(key, None)) is not None:
                self._send("report", one.container, (one.until_seconds, now_seconds))

    def _send(self, name: str, one: ContainerAssignment, times: tuple[float, float]) -> None:
        begin_ns, end_ns = map(self._clock.unix_ns, times)
        attributes: dict[str, str | int] = {
            "k8s.pod.uid": one.pod_uid,
            "k8s.pod.name": one.pod,
            "k8s.namespace.name": one.namespace,
            "k8s.node.name": self._node,
            "numapin.generation": self._generation,
        }
        if name != "accept":
            attributes |= {"k8s.container.name": one.container, "numapin.cpus": str(one.cpus)}
        self._sink(Span(name, one.pod_uid, begin_ns, max(begin_ns, end_ns), attributes))
        fields = {"cpus": one.cpus, "node": self._node, "generation": self._generation}
        LOG.info(_LINES[name], extra=log_fields(one) | fields)


def _pods(spec: NodeAssignmentSpec | None) -> Mapping[str, ContainerAssignment]:
    """One exclusive container of each pod."""
    containers = spec.containers if spec is not None else ()
    return {one.pod_uid: one for one in containers if one.exclusive}
