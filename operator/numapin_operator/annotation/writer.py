"""Writes the annotation of each pod that differs from what the assignment of its node says."""

import logging
from collections.abc import Callable, Mapping
from typing import Final

from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_client.errors import ClientError, ConnectionFailedError, NotFoundError
from numapin_client.resources import Key
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.logs.log_limit import LogLimit
from numapin_operator.annotation.content import annotations, with_notice
from numapin_operator.annotation.denied import Denied, lacks_right
from numapin_operator.annotation.sent import SentTexts
from numapin_operator.api_server import Cluster
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.pods.annotation import annotation_digest
from numapin_operator.placement import PodView
from numapin_operator.queues.workqueue import WorkQueue

EDIT_SECONDS: Final = 1.0
"""How long an annotation stays that somebody else has written."""

NO_RIGHT: Final = (
    "workloads are not told their CPUs, the operator may not patch pods: apply "
    "manifests/components/cpu-annotation, or leave --annotate-pods out"
)

REMEMBERED_NODES: Final = 256
"""Of so many nodes the texts are kept: those of 250 pods take 5 ms to make."""

WORKERS: Final = 4
"""Nodes whose pods are annotated at the same time."""

_Texts = tuple[NodeAssignmentSpec, Topology | None, Mapping[str, str]]
"""The texts of a node, and what they were made of."""

_log = logging.getLogger(__name__)


class PodAnnotations:
    """Implements `Telling` by annotations.

    Each pass over a node compares all its pods, so a lost event, an edit by a tenant and a restart
    come to the same end. What waits are names of nodes; nothing else is remembered of pods but what
    the watch has not shown yet, and since when they know that CPUs leave them.
    """

    def __init__(
        self,
        cluster: Cluster,
        state: ClusterState,
        wake: Callable[[str], object],
        clock: Clock | None = None,
        queue: WorkQueue | None = None,
    ) -> None:
        """Write nothing yet.

        Args:
            cluster: where pods are annotated.
            state: says what must be written, and what is.
            wake: called with each node that must be planned again because pods have been told.
            clock: the machine's clock by default.
            queue: the nodes that wait, by the same clock; one of its own by default.
        """
        self._cluster, self._state, self._wake = cluster, state, wake
        self._clock = clock or SystemClock()
        self._queue = queue or WorkQueue(clock=self._clock)
        self._sent = SentTexts()
        self._told: dict[str, dict[str, tuple[bytes, float]]] = {}
        self._texts: dict[str, _Texts] = {}
        self._edited: set[str] = set()
        self._denied = Denied(NO_RIGHT, "workloads are told their CPUs again", self._clock)
        self._lines = LogLimit(at_once=3, per_second=1 / 600, clock=self._clock)

    def told(self, node: str) -> Mapping[str, float] | None:
        """Since when pods know by their annotation what leaves them; None without the right."""
        if self._denied:
            return None
        if not (known := self._told.get(node)):
            return {}
        wanted = self._wanted(node)
        return {
            uid: since
            for uid, (digest, since) in known.items()
            if annotation_digest(wanted.get(uid)) == digest
        }

    def tell(self, node: str) -> None:
        """Have the pods of a node compared soon."""
        self._queue.add(node)

    def note_edit(self, node: str) -> None:
        """Have the pods of a node compared a little later, since an annotation was changed.

        A tenant who changes it in a loop causes one write in that time.
        """
        if node not in self._edited:
            self._edited.add(node)
            self._queue.add(node, at=self._clock.monotonic() + EDIT_SECONDS)

    async def work(self) -> None:
        """Annotate the pods of node after node, until cancelled."""
        await self._queue.serve(self._compare, self._note_failure, self._note_defect)

    async def _compare(self, node: str) -> None:
        """Annotate the pods of one node, as soon as that is allowed."""
        await self._denied.wait()
        self._edited.discard(node)
        await self._annotate(node)

    async def _annotate(self, node: str) -> None:
        """Write what differs on one node; one pod that fails does not keep the others from it."""
        wanted, pods = self._wanted(node), tuple(self._state.pods_on(node))
        self._sent.forget_seen(node, pods)
        failure: ClientError | None = None
        for pod in pods:
            text = wanted.get(pod.uid)
            if self._is_written(node, pod, text):
                continue
            try:
                await self._cluster.annotate(Key(pod.name, pod.namespace), pod.uid, text)
            except NotFoundError:
                continue  # it is gone
            except ClientError as error:
                if isinstance(error, ConnectionFailedError) or lacks_right(error):
                    raise
                failure = error
            else:
                self._denied.note_allowed()
                self._sent.note(node, pod, text)
        self._note_told(node, wanted)
        if failure is not None:
            raise failure

    def _wanted(self, node: str) -> Mapping[str, str]:
        """The text for each pod, which several passes in a row need."""
        assignment = self._state.assignments.get(node)
        if assignment is None:
            return {}
        spec, topology = assignment.spec, assignment.topology
        known = self._texts.pop(node, None)
        if known is not None and known[0] is spec and known[1] is topology:
            texts = known[2]
        else:
            texts = annotations(spec, topology)
        self._texts[node] = spec, topology, texts
        if len(self._texts) > REMEMBERED_NODES:
            del self._texts[next(iter(self._texts))]
        return texts

    def _is_written(self, node: str, pod: PodView, text: str | None) -> bool:
        """Whether a pod says so already, or will once the watch has delivered it.

        The kubelet reads a static pod from its file and never sees what is written to its mirror.
        """
        if pod.mirror is not None or pod.annotated == annotation_digest(text):
            return True
        return self._sent.has(node, pod, text)

    def _note_told(self, node: str, wanted: Mapping[str, str]) -> None:
        """Note which pods know by now at which time CPUs leave them."""
        assignment, before = self._state.assignments.get(node), self._told.pop(node, {})
        leaving = with_notice(assignment.spec) if assignment is not None else frozenset()
        told: dict[str, tuple[bytes, float]] = {}
        for pod in self._state.pods_on(node) if leaving else ():
            text = wanted.get(pod.uid)
            if pod.uid in leaving and self._is_written(node, pod, text):
                digest, now = annotation_digest(text), self._clock.now().timestamp()
                known = before.get(pod.uid)
                told[pod.uid] = known if known and known[0] == digest else (digest, now)
        if told:
            self._told[node] = told
        if told.items() - before.items():
            self._wake(node)

    def _note_defect(self, node: str, error: Exception) -> None:
        _log.error("cannot annotate the pods of a node", extra={"node": node}, exc_info=error)

    def _note_failure(self, node: str, error: ClientError, delay: float) -> None:
        if not self._denied.note(error) and (more := self._lines.admit(node)) is not None:
            again = {"node": node, "error": str(error), "again_in_seconds": round(delay, 1)}
            _log.warning("cannot annotate a pod", extra={**again, **more})
