"""A cluster as the operator observes it, as slim values. Does no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from numapin_client.resources import Key
from numapin_operator.observe.assignments.report import ReportView, TopologyView
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.cache import ClusterState
from numapin_operator.placement import PodView


@dataclass(frozen=True, slots=True)
class Observed:
    """What is known of a cluster as the operator observes it, beside its objects."""

    assignments: Sequence[AssignmentView] = ()
    reports: Sequence[ReportView] = ()
    topologies: Sequence[TopologyView] = ()
    pods: Sequence[PodView] = ()

    def put_pods(self, state: ClusterState) -> int:
        """Have the state observe the pods; returns how many are left out as they are not bound."""
        for pod in self.pods:
            if pod.node:
                state.put_pod(Key(pod.name, pod.namespace), pod)
        return sum(not pod.node for pod in self.pods)


NOTHING: Final = Observed()
