"""Tells each refused pod so, and no pod that is not refused any more."""

from collections.abc import Mapping
from typing import Final

from numapin_api import names
from numapin_client.resources import Key
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.rate_limit import TokenBucket
from numapin_operator.annotation.comparing import Comparison, Words
from numapin_operator.annotation.refusals import refusals
from numapin_operator.cluster import Cluster
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.pods.annotation import refusal_mark
from numapin_operator.placement import PodView
from numapin_operator.queues.workqueue import WorkQueue

AT_ONCE: Final = 100
WRITES_PER_SECOND: Final = 20.0
"""Annotations that are written at once after a quiet time, and in the long run, on all nodes: a
tenant whose pods are refused in a loop takes little of the requests that placing pods needs."""

NO_RIGHT: Final = (
    "pods are not told that they were refused, the operator may not patch pods: apply "
    "manifests/base/operator-refusals.yaml, or set --no-annotate-refusals"
)

_WORDS: Final = Words(
    denied=NO_RIGHT,
    allowed="pods are told again that they were refused",
    failed="cannot tell a pod that it was refused",
    defect="cannot tell the refused pods of a node",
)

WORKERS: Final = 2
"""Nodes whose pods are told at the same time."""


class RefusalAnnotations:
    """Tells pods that they were refused, by an annotation that goes when they no longer are.

    Reasons are compared: the numbers are those of the decision, and change with each neighbour.
    """

    def __init__(
        self,
        cluster: Cluster,
        state: ClusterState,
        clock: Clock | None = None,
        queue: WorkQueue | None = None,
    ) -> None:
        """Write nothing yet.

        Args:
            cluster: where pods are annotated.
            state: says what must be written, and what is.
            clock: the machine's clock by default.
            queue: the nodes that wait, by the same clock; one of its own by default.
        """
        self._cluster, self._state = cluster, state
        self._clock = clock or SystemClock()
        self._budget = TokenBucket(AT_ONCE, WRITES_PER_SECOND)
        self._comparison = Comparison(self, state, _WORDS, self._clock, queue)
        self.note_edit, self.work = self._comparison.note_edit, self._comparison.work

    def tell(self, node: str) -> None:
        """Have the pods of a node compared soon, if one is refused or says that it was."""
        assignment = self._state.assignments.get(node)
        is_refusing = assignment is not None and bool(assignment.spec.refused)
        if is_refusing or any(pod.told for pod in self._state.pods_on(node)):
            self._comparison.add(node)

    def wanted(self, node: str) -> Mapping[str, str]:
        """The text for each refused pod of a node."""
        assignment = self._state.assignments.get(node)
        return refusals(assignment.spec) if assignment is not None else {}

    def is_said(self, pod: PodView, text: str | None) -> bool:
        """Whether a pod says so already, or need not any more.

        The UID of a static pod is not that of its mirror.
        """
        if pod.mirror is not None or pod.terminal or pod.deleting:
            return True
        return pod.told == refusal_mark(text)

    async def write(self, pod: PodView, text: str | None) -> None:
        """Write it to one pod, as soon as there is a turn for it."""
        while not self._budget.take(1, self._clock.monotonic()):
            await self._clock.sleep(1 / WRITES_PER_SECOND)
        key = Key(pod.name, pod.namespace)
        await self._cluster.annotate(key, pod.uid, text, names.REFUSED_ANNOTATION)

    def compared(self, node: str, wanted: Mapping[str, str]) -> None:
        """Nothing follows."""
