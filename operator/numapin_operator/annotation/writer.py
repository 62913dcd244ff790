"""Writes the annotation of each pod that differs from what the assignment of its node says."""

from collections.abc import Callable, Mapping
from typing import Final

from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_client.resources import Key
from numapin_daemon.clock import Clock, SystemClock
from numapin_operator.annotation.comparing import Comparison, Words
from numapin_operator.annotation.content import annotations, with_notice
from numapin_operator.cluster import Cluster
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.pods.annotation import annotation_digest
from numapin_operator.placement import PodView
from numapin_operator.queues.workqueue import WorkQueue

NO_RIGHT: Final = (
    "workloads are not told their CPUs, the operator may not patch pods: apply "
    "manifests/components/cpu-annotation, or leave --annotate-pods out"
)

_WORDS: Final = Words(
    denied=NO_RIGHT,
    allowed="workloads are told their CPUs again",
    failed="cannot annotate a pod",
    defect="cannot annotate the pods of a node",
)

REMEMBERED_NODES: Final = 256
"""Of so many nodes the texts are kept: those of 250 pods take 5 ms to make."""

WORKERS: Final = 4
"""Nodes whose pods are annotated at the same time."""

_Texts = tuple[NodeAssignmentSpec, Topology | None, Mapping[str, str]]
"""The texts of a node, and what they were made of."""


class PodAnnotations:
    """Implements `Telling` by annotations.

    It remembers of pods since when they know that CPUs leave them; see `Comparison` for the rest.
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
        self._told: dict[str, dict[str, tuple[bytes, float]]] = {}
        self._texts: dict[str, _Texts] = {}
        self._comparison = Comparison(self, state, _WORDS, self._clock, queue)
        self.tell, self.work = self._comparison.add, self._comparison.work
        self.note_edit = self._comparison.note_edit

    def told(self, node: str) -> Mapping[str, float] | None:
        """Since when pods know by their annotation what leaves them; None without the right."""
        if self._comparison.denied:
            return None
        if not (known := self._told.get(node)):
            return {}
        wanted = self.wanted(node)
        return {
            uid: since
            for uid, (digest, since) in known.items()
            if annotation_digest(wanted.get(uid)) == digest
        }

    def wanted(self, node: str) -> Mapping[str, str]:
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

    def is_said(self, pod: PodView, text: str | None) -> bool:
        """Whether a pod says so already, or cannot.

        The kubelet reads a static pod from its file and never sees what is written to its mirror.
        """
        return pod.mirror is not None or pod.annotated == annotation_digest(text)

    async def write(self, pod: PodView, text: str | None) -> None:
        """Write it to one pod."""
        await self._cluster.annotate(Key(pod.name, pod.namespace), pod.uid, text)

    def compared(self, node: str, wanted: Mapping[str, str]) -> None:
        """Note which pods know by now at which time CPUs leave them."""
        assignment, before = self._state.assignments.get(node), self._told.pop(node, {})
        leaving = with_notice(assignment.spec) if assignment is not None else frozenset()
        told: dict[str, tuple[bytes, float]] = {}
        for pod in self._state.pods_on(node) if leaving else ():
            text = wanted.get(pod.uid)
            if pod.uid in leaving and self._comparison.is_written(node, pod, text):
                digest, now = annotation_digest(text), self._clock.now().timestamp()
                known = before.get(pod.uid)
                told[pod.uid] = known if known and known[0] == digest else (digest, now)
        if told:
            self._told[node] = told
        if told.items() - before.items():
            self._wake(node)
