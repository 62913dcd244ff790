"""What is absent from the cache is read from the API server before it counts as gone."""

from collections.abc import Iterable, Iterator
from typing import Final

from numapin_client.errors import ClientError
from numapin_client.resources import Key
from numapin_daemon.clock import Clock
from numapin_operator.api_server import Cluster
from numapin_operator.nodes.decide import NodePicture
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.pods.mirror_pods import with_static_uids
from numapin_operator.observe.records import AssignmentView
from numapin_operator.observe.tombstones import node_key
from numapin_operator.placement import PodView

VANISHED_SECONDS: Final = 300.0
"""How long the assignment of a Node stays that is gone.

A Node that is deleted and registered again keeps its pods: they are deleted 40 s after it is gone.
Source: Kubernetes v1.36, podgc, `quarantineTime`.
"""


class BehindError(ClientError):
    """An object exists that the cache lacks: its watch is late."""

    def __init__(self, objects: Iterable[str]) -> None:
        named = ", ".join(objects)
        super().__init__(f"the watch has not delivered these yet, although they exist: {named}")


class Absences:
    """Asks the API server about the Node and the pods of assignments where the cache lacks them.

    Each object is read once if it is gone, and again at each attempt while its watch is late.
    """

    def __init__(self, cluster: Cluster, state: ClusterState, clock: Clock) -> None:
        self._cluster, self._state, self._clock = cluster, state, clock
        self._vanished: dict[str, float] = {}
        """Since when each node with an assignment has no Node, as this leader has seen it."""

    def stays_until(self, picture: NodePicture) -> float | None:
        """Until when the assignment stays although its Node is gone, in seconds since 1970.

        None if it need not, or the time is over. A restart or another leader begins again.
        """
        name, assignment = picture.name, picture.assignment
        if picture.node is not None or assignment is None or assignment.spec.pools is None:
            self._vanished.pop(name, None)
            return None
        now = self._clock.monotonic()
        left_seconds = self._vanished.setdefault(name, now) + VANISHED_SECONDS - now
        return self._clock.now().timestamp() + left_seconds if left_seconds > 0 else None

    async def confirm_node(self, assignment: AssignmentView) -> None:
        """Return if the Node of an assignment is in the cache, or is known to be gone.

        Raises:
            BehindError: it exists; nothing can be decided without it.
            ClientError: it cannot be read.
        """
        gone, name = self._state.gone, assignment.name
        if name in self._state.nodes or node_key(name) in gone:
            return
        if await self._cluster.read_node(name) is not None:
            raise BehindError([f"Node {name}"])
        gone.add(node_key(name))

    async def missing_pods(
        self, assignment: AssignmentView, present: Iterable[PodView]
    ) -> tuple[PodView, ...]:
        """Pods with CPUs that exist although they are not among those present.

        Raises:
            ClientError: one cannot be read.
        """
        known = {pod.uid for pod in present}.union(assignment.status.running)
        found = []
        for uid, key in dict(_pods_of(assignment)).items():
            if uid in known or uid in self._state.gone:
                continue
            pod = await self._cluster.read_pod(key)
            if pod is not None and not pod.terminal and self._is(pod, uid):
                found.append(pod)
            else:
                self._state.gone.add(uid)
        return tuple(found)

    def _is(self, pod: PodView, uid: str) -> bool:
        node = self._state.nodes.get(pod.node)
        [alone] = with_static_uids([pod], node.uid) if node else [pod]
        return alone.uid == uid


def _pods_of(assignment: AssignmentView) -> Iterator[tuple[str, Key]]:
    for one in assignment.spec.containers:
        yield one.pod_uid, Key(one.pod, one.namespace)
