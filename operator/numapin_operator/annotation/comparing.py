"""Brings one annotation of the pods of node after node to what it should be."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from numapin_client.errors import ClientError, ConnectionFailedError, NotFoundError
from numapin_daemon.clock import Clock
from numapin_daemon.logs.log_limit import LogLimit
from numapin_operator.annotation.denied import Denied, lacks_right
from numapin_operator.annotation.sent import SentTexts
from numapin_operator.observe.cache import ClusterState
from numapin_operator.placement import PodView
from numapin_operator.queues.workqueue import WorkQueue

EDIT_SECONDS: Final = 1.0
"""How long an annotation stays that somebody else has written."""

_log = logging.getLogger(__name__)


class Annotation(Protocol):
    """One annotation of pods."""

    def wanted(self, node: str) -> Mapping[str, str]:
        """The text for each pod of a node, by UID; none for all others."""

    def is_said(self, pod: PodView, text: str | None) -> bool:
        """Whether a pod says so already, or cannot or need not be told."""

    async def write(self, pod: PodView, text: str | None) -> None:
        """Write it to one pod; None removes it. A ClientError says that it was not."""

    def compared(self, node: str, wanted: Mapping[str, str]) -> None:
        """All pods of a node were compared, and what could be written was."""


@dataclass(frozen=True, slots=True)
class Words:
    """What is logged of one annotation.

    Attributes:
        denied: the operator's role lacks the right.
        allowed: it has it again.
        failed: a write failed.
        defect: a node could not be compared.
    """

    denied: str
    allowed: str
    failed: str
    defect: str


class Comparison:
    """Compares all pods of a node at once, and writes what differs.

    So a lost event, an edit by a tenant and a restart come to the same end. What waits are names of
    nodes; nothing else is remembered of pods but what the watch has not shown yet.

    Attributes:
        denied: whether the operator's role lacked the right lately.
    """

    def __init__(
        self,
        annotation: Annotation,
        state: ClusterState,
        words: Words,
        clock: Clock,
        queue: WorkQueue | None = None,
    ) -> None:
        """Compare nothing yet.

        Args:
            annotation: what must be written.
            state: has the pods of each node.
            words: what is logged.
            clock: measures every time.
            queue: the nodes that wait, by the same clock; one of its own by default.
        """
        self._annotation, self._state, self._words, self._clock = annotation, state, words, clock
        self._queue = queue or WorkQueue(clock=clock)
        self._sent, self._edited = SentTexts(), set[str]()
        self.denied = Denied(words.denied, words.allowed, clock)
        self._lines = LogLimit(at_once=3, per_second=1 / 600, clock=clock)

    def add(self, node: str) -> None:
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
        """Compare the pods of node after node, until cancelled."""
        await self._queue.serve(self._compare, self._note_failure, self._note_defect)

    def is_written(self, node: str, pod: PodView, text: str | None) -> bool:
        """Whether a pod says so already, or will once the watch has delivered it."""
        return self._annotation.is_said(pod, text) or self._sent.has(node, pod, text)

    async def _compare(self, node: str) -> None:
        """Write what differs on one node, as soon as that is allowed.

        One pod that fails does not keep the others from it.
        """
        await self.denied.wait()
        self._edited.discard(node)
        wanted, pods = self._annotation.wanted(node), tuple(self._state.pods_on(node))
        self._sent.forget_seen(node, pods)
        failure = await self._write_all(node, pods, wanted)
        self._annotation.compared(node, wanted)
        if failure is not None:
            raise failure

    async def _write_all(
        self, node: str, pods: Sequence[PodView], wanted: Mapping[str, str]
    ) -> ClientError | None:
        """Write what differs; return the last failure that concerns single pods."""
        failure: ClientError | None = None
        for pod in pods:
            text = wanted.get(pod.uid)
            if self.is_written(node, pod, text):
                continue
            try:
                await self._annotation.write(pod, text)
            except NotFoundError:
                continue  # it is gone
            except ClientError as error:
                if isinstance(error, ConnectionFailedError) or lacks_right(error):
                    raise
                failure = error
            else:
                self.denied.note_allowed()
                self._sent.note(node, pod, text)
        return failure

    def _note_defect(self, node: str, error: Exception) -> None:
        _log.error(self._words.defect, extra={"node": node}, exc_info=error)

    def _note_failure(self, node: str, error: ClientError, delay: float) -> None:
        if not self.denied.note(error) and (more := self._lines.admit(node)) is not None:
            again = {"node": node, "error": str(error), "again_in_seconds": round(delay, 1)}
            _log.warning(self._words.failed, extra={**again, **more})
