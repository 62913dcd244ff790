"""Tells held pods why they wait: by an annotation and an Event, when the reason is another one."""

import logging
from collections.abc import Set as AbstractSet
from typing import Final

from numapin_api import names
from numapin_api.conditions.reasons import Reason
from numapin_api.quantity import plural
from numapin_api.schema.plain_assignment import Refusal
from numapin_api.text import cut_text
from numapin_client.errors import ClientError, NotFoundError
from numapin_client.resources import Key
from numapin_daemon.clock import Clock
from numapin_daemon.flowcontrol.rate_limit import TokenBucket
from numapin_daemon.logs.lines import POD_UID
from numapin_daemon.logs.log_limit import LogLimit
from numapin_operator.cluster import Cluster
from numapin_operator.holding.slots import Lack
from numapin_operator.nodes.events.refusal_events import RefusalEvents
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.holding.held_pod import HeldPod
from numapin_operator.observe.pods.annotation import refusal_mark
from numapin_operator.queues.workqueue import WorkQueue

QUIET_SECONDS: Final = 60.0
"""How long a pod is not told another reason."""

AT_ONCE: Final = 100
WRITES_PER_SECOND: Final = 20.0
"""Annotations that are written at once after a quiet time, and in the long run."""

TEXT_LENGTH: Final = 900

CONSEQUENCE: Final = "it stays pending until a node has a place for it"

_log = logging.getLogger(__name__)


BLOCKED: Final = (
    "; its controller and others have some pods placed and some that wait: if such pods only work "
    "together, these groups wait for each other until one of them is deleted or suspended"
)


def text_of(node: str, lack: Lack, nodes: int, *, is_blocked: bool) -> str:
    """Why a pod waits; what stands before the colon is what is compared."""
    where = f"container {lack.container}: " if lack.container else ""
    nearest = f"{node} comes nearest of {plural(nodes, 'node')}"
    why = f"{lack.reason} on {node}"
    if is_blocked:
        why = f"{Reason.GROUPS_BLOCKED}, {why}"
    also = BLOCKED if is_blocked else ""
    return cut_text(f"{why}: {where}{lack.message} ({nearest})", TEXT_LENGTH - len(also)) + also


class HeldTexts:
    """Tells each held pod why it waits."""

    def __init__(
        self, cluster: Cluster, state: ClusterState, events: RefusalEvents, clock: Clock
    ) -> None:
        """Tell nothing yet."""
        self._cluster, self._state, self._events, self._clock = cluster, state, events, clock
        self._queue = WorkQueue(clock=clock)
        self._texts: dict[str, str] = {}
        self._told_at: dict[str, float] = {}
        self._budget = TokenBucket(AT_ONCE, WRITES_PER_SECOND)
        self._lines = LogLimit(at_once=3, per_second=1 / 60, clock=clock)

    def tell(
        self, pod: HeldPod, node: str, lack: Lack, nodes: int, *, is_blocked: bool = False
    ) -> None:
        """Have a pod told why it waits, unless it says so already or was told lately.

        Args:
            pod: the pod.
            node: the node that comes nearest.
            lack: what is missing there.
            nodes: how many nodes the pod may use.
            is_blocked: whether its group and others may wait for each other.
        """
        uid, text = pod.uid, text_of(node, lack, nodes, is_blocked=is_blocked)
        if pod.told == refusal_mark(text):
            return
        now = self._clock.monotonic()
        if now - self._told_at.get(uid, -QUIET_SECONDS) < QUIET_SECONDS:
            return
        self._told_at[uid], self._texts[uid] = now, text
        view = pod.pod
        held = Refusal(
            pod_uid=uid,
            namespace=view.namespace,
            pod=view.name,
            reason=Reason.HELD,
            message=text,
        )
        self._events.offer([held], CONSEQUENCE)
        self._queue.add(uid)

    def forget_others(self, uids: AbstractSet[str]) -> None:
        """Forget pods that are not held any more."""
        for uid in self._told_at.keys() - uids:
            del self._told_at[uid]
            self._texts.pop(uid, None)

    async def work(self) -> None:
        """Annotate pod after pod, until cancelled."""
        await self._queue.serve(self._write, self._note_failure, self._note_defect)

    async def _write(self, uid: str) -> None:
        while not self._budget.take(1, self._clock.monotonic()):
            await self._clock.sleep(1 / WRITES_PER_SECOND)
        pod, text = self._state.held.pods.get(uid), self._texts.pop(uid, None)
        if pod is None or text is None or not pod.is_gated or self._state.held.reserved(uid):
            return
        key = Key(pod.pod.name, pod.pod.namespace)
        try:
            await self._cluster.annotate(key, uid, text, names.HELD_ANNOTATION)
        except NotFoundError:
            return
        except ClientError:
            self._texts.setdefault(uid, text)
            raise

    def _note_failure(self, uid: str, error: ClientError, delay: float) -> None:
        if (more := self._lines.admit()) is not None:
            about = {POD_UID: uid, "error": str(error), "again_in_seconds": round(delay, 1)}
            _log.warning("cannot tell a held pod why it waits", extra={**about, **more})

    def _note_defect(self, uid: str, error: Exception) -> None:
        _log.error("cannot tell a held pod why it waits", extra={POD_UID: uid}, exc_info=error)
