"""Reads the operator's state for its metrics; each function may be called in any thread."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from numapin_client.cache.informer import Informer
from numapin_daemon.clock import Clock
from numapin_daemon.telemetry.metric import Labels, Metric, Values
from numapin_daemon.telemetry.process_table import WATCH_AGE
from numapin_operator.telemetry.states import NodesState, QueueState
from numapin_operator.telemetry.table import (
    EVICTIONS_WAITING,
    HELD_PODS,
    LEADS,
    NODES,
    OUTDATED,
    POLICIES,
    QUEUE_AGE,
    QUEUE_LENGTH,
    REFUSED_PODS,
)

_SAME_FOR_ALL: Final = (LEADS, WATCH_AGE, QUEUE_AGE, POLICIES)
"""Of several shards the greatest value counts, not the sum."""


@dataclass(frozen=True, slots=True)
class Readings:
    """Where the values come from."""

    informers: Mapping[str, Informer[object]]
    clock: Clock
    leads: Callable[[], bool]
    queue: Callable[[], QueueState]
    nodes: Callable[[], NodesState]
    policies: Callable[[], int]
    evictions: Callable[[], int]
    held: Callable[[], int]
    numa_nodes: Callable[[], Values] = dict

    def read(self) -> Values:
        """The present values; those that only the leader keeps current are absent without the lead.

        Two replicas would otherwise report the same nodes and pods.
        """
        now_seconds, queue, leads = self.clock.monotonic(), self.queue(), self.leads()
        return {
            LEADS: {(): float(leads)},
            WATCH_AGE: {
                (name,): now_seconds - one.heard_at for name, one in self.informers.items()
            },
            QUEUE_LENGTH: {("waiting",): queue.waiting, ("delayed",): queue.delayed},
            QUEUE_AGE: {(): queue.oldest_seconds},
            POLICIES: {(): self.policies()},
            **(self._of_leader() if leads else {}),
        }

    def _of_leader(self) -> Values:
        nodes = self.nodes()
        return {
            NODES: {(state,): count for state, count in nodes.by_state.items()},
            REFUSED_PODS: {(): nodes.refused},
            OUTDATED: {(): nodes.outdated},
            EVICTIONS_WAITING: {(): self.evictions()},
            **self.numa_nodes(),
            HELD_PODS: {(): self.held()},
        }


def of_all(shards: Iterable[Values]) -> Values:
    """The values of a process that serves several shards: sums, and the greatest age."""
    found: dict[Metric, dict[Labels, float]] = {}
    for values in shards:
        for metric, series in values.items():
            known = found.setdefault(metric, {})
            for labels, value in series.items():
                before = known.get(labels, 0.0)
                same = metric in _SAME_FOR_ALL
                known[labels] = max(before, value) if same else before + value
    return found
