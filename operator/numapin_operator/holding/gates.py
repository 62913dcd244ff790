"""Opens the gates of held pods: for the node that has a place, or because nothing holds them."""

import logging
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_api.text import cut_text
from numapin_client.errors import ClientError, InvalidError, NotFoundError
from numapin_client.resources import Key
from numapin_daemon.clock import Clock
from numapin_daemon.logs.lines import POD_UID
from numapin_daemon.logs.log_limit import LogLimit
from numapin_operator.cluster import Cluster, PodEvent
from numapin_operator.nodes.events.refusal_events import RefusalEvents
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.holding.held_pod import HeldPod
from numapin_operator.queues.workqueue import WorkQueue

NOTE_LENGTH: Final = 900

NO_RIGHT: Final = (
    "cannot open the gate of a pod: apply manifests/components/holding (Helm: holding.enabled), or "
    "open it by hand (docs/holding.md)"
)

_log = logging.getLogger(__name__)


class Gates:
    """Opens gates, pod after pod, each again after a back-off if that failed."""

    def __init__(
        self, cluster: Cluster, state: ClusterState, events: RefusalEvents, clock: Clock
    ) -> None:
        """Open nothing yet."""
        self._cluster, self._state, self._events = cluster, state, events
        self._queue = WorkQueue(clock=clock)
        self._unheld: dict[str, str] = {}
        """Why nothing holds these pods."""
        self._lines = LogLimit(at_once=3, per_second=1 / 60, clock=clock)

    def open(self, uid: str, unheld: str = "") -> None:
        """Have a gate opened: for the node that has a place for the pod, or as nothing holds it."""
        if unheld:
            self._unheld[uid] = unheld
        else:
            self._unheld.pop(uid, None)
        self._queue.add(uid)

    async def work(self) -> None:
        """Open gate after gate, until cancelled."""
        await self._queue.serve(self._step, self._note_failure, self._note_defect)

    async def _step(self, uid: str) -> None:
        unheld, pod = self._unheld.pop(uid, ""), self._state.held.pods.get(uid)
        node = self._state.held.reserved(uid)
        if pod is None or not pod.is_gated or (node is None and not unheld):
            return
        try:
            await self._open(pod, node)
        except NotFoundError:
            return
        except ClientError:
            if unheld:
                self._unheld.setdefault(uid, unheld)
            raise
        if node is None:
            view, note = pod.pod, f"its gate is opened, and it has no place of its own: {unheld}"
            self._events.inform(
                [
                    PodEvent(
                        view.namespace,
                        view.name,
                        uid,
                        Reason.NOT_HELD,
                        cut_text(note, NOTE_LENGTH),
                        is_warning=False,
                        is_once=True,
                    )
                ]
            )

    async def _open(self, pod: HeldPod, node: str | None) -> None:
        key = Key(pod.pod.name, pod.pod.namespace)
        try:
            await self._cluster.patch_held(key, pod.opened_for(node))
        except InvalidError:
            if node is None:
                raise
            # Its affinity cannot be narrowed: it may be bound elsewhere, and must not wait for us.
            await self._cluster.patch_held(key, pod.opened_for(None))

    def _note_failure(self, uid: str, error: ClientError, delay: float) -> None:
        pod = self._state.held.pods.get(uid)
        if pod is not None and (more := self._lines.admit(pod.pod.namespace)) is not None:
            named = {POD_UID: uid, "pod": f"{pod.pod.namespace}/{pod.pod.name}"}
            about = {"error": str(error), "again_in_seconds": round(delay, 1)}
            _log.warning(NO_RIGHT, extra={**named, **about, **more})

    def _note_defect(self, uid: str, error: Exception) -> None:
        _log.error("cannot open the gate of a pod", extra={POD_UID: uid}, exc_info=error)
