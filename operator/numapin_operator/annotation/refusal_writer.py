"""Tells each refused pod so, and no pod that is not refused any more."""

import logging
from typing import Final

from numapin_api import names
from numapin_client.errors import ClientError, ConnectionFailedError, NotFoundError
from numapin_client.resources import Key
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.rate_limit import TokenBucket
from numapin_daemon.logs.log_limit import LogLimit
from numapin_operator.annotation.denied import Denied, lacks_right
from numapin_operator.annotation.refusals import refusals
from numapin_operator.annotation.sent import SentTexts
from numapin_operator.annotation.writer import EDIT_SECONDS
from numapin_operator.api_server import Cluster
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

WORKERS: Final = 2
"""Nodes whose pods are told at the same time."""

_log = logging.getLogger(__name__)


class RefusalAnnotations:
    """Tells pods that they were refused, by an annotation that goes when they no longer are.

    Each pass over a node compares all its pods, so a lost event, an edit and a restart come to the
    same end. Reasons are compared: the numbers are those of the decision, and change with each
    neighbour.
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
        self._queue = queue or WorkQueue(clock=self._clock)
        self._budget = TokenBucket(AT_ONCE, WRITES_PER_SECOND)
        self._sent = SentTexts()
        self._edited: set[str] = set()
        self._denied = Denied(NO_RIGHT, "pods are told again that they were refused", self._clock)
        self._lines = LogLimit(at_once=3, per_second=1 / 600, clock=self._clock)

    def tell(self, node: str) -> None:
        """Have the pods of a node compared soon, if one is refused or says that it was."""
        assignment = self._state.assignments.get(node)
        is_refusing = assignment is not None and bool(assignment.spec.refused)
        if is_refusing or any(pod.told for pod in self._state.pods_on(node)):
            self._queue.add(node)

    def note_edit(self, node: str) -> None:
        """Have the pods of a node compared a little later, since an annotation was changed."""
        if node not in self._edited:
            self._edited.add(node)
            self._queue.add(node, at=self._clock.monotonic() + EDIT_SECONDS)

    async def work(self) -> None:
        """Tell the pods of node after node, until cancelled."""
        await self._queue.serve(self._compare, self._note_failure, self._note_defect)

    async def _compare(self, node: str) -> None:
        """Write what differs on one node; one pod that fails does not keep the others from it."""
        await self._denied.wait()
        self._edited.discard(node)
        assignment = self._state.assignments.get(node)
        wanted = refusals(assignment.spec) if assignment is not None else {}
        pods = tuple(self._state.pods_on(node))
        self._sent.forget_seen(node, pods)
        failure: ClientError | None = None
        for pod in pods:
            text = wanted.get(pod.uid)
            if self._is_written(node, pod, text):
                continue
            try:
                await self._write(node, pod, text)
            except NotFoundError:
                continue  # it is gone
            except ClientError as error:
                if isinstance(error, ConnectionFailedError) or lacks_right(error):
                    raise
                failure = error
        if failure is not None:
            raise failure

    async def _write(self, node: str, pod: PodView, text: str | None) -> None:
        while not self._budget.take(1, self._clock.monotonic()):
            await self._clock.sleep(1 / WRITES_PER_SECOND)
        key = Key(pod.name, pod.namespace)
        await self._cluster.annotate(key, pod.uid, text, names.REFUSED_ANNOTATION)
        self._denied.note_allowed()
        self._sent.note(node, pod, text)

    def _is_written(self, node: str, pod: PodView, text: str | None) -> bool:
        """Whether a pod says so already, will once the watch shows it, or need not any more.

        The UID of a static pod is not that of its mirror.
        """
        if pod.mirror is not None or pod.terminal or pod.deleting:
            return True
        return pod.told == refusal_mark(text) or self._sent.has(node, pod, text)

    def _note_defect(self, node: str, error: Exception) -> None:
        _log.error("cannot tell the refused pods of a node", extra={"node": node}, exc_info=error)

    def _note_failure(self, node: str, error: ClientError, delay: float) -> None:
        if not self._denied.note(error) and (more := self._lines.admit(node)) is not None:
            again = {"node": node, "error": str(error), "again_in_seconds": round(delay, 1)}
            _log.warning("cannot tell a pod that it was refused", extra={**again, **more})
