"""What is absent from the cache is read from the API server before it counts as gone."""

from collections.abc import Iterable, Iterator

from numapin_client.errors import ClientError
from numapin_client.resources import Key
from numapin_operator.api_server import Cluster
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.pods.mirror_pods import with_static_uids
from numapin_operator.observe.records import AssignmentView
from numapin_operator.placement import PodView


class BehindError(ClientError):
    """An object exists that the cache lacks: its watch is late."""

    def __init__(self, objects: Iterable[str]) -> None:
        named = ", ".join(objects)
        super().__init__(f"the watch has not delivered these yet, although they exist: {named}")


class Absences:
    """Asks the API server about the Node and the pods of assignments where the cache lacks them.

    Each object is read once if it is gone, and again at each attempt while its watch is late.
    """

    def __init__(self, cluster: Cluster, state: ClusterState) -> None:
        self._cluster, self._state = cluster, state

    async def confirm_node(self, assignment: AssignmentView) -> None:
        """Return if the Node of an assignment is in the cache, or is known to be gone.

        Raises:
            BehindError: it exists; nothing can be decided without it.
            ClientError: it cannot be read.
        """
        gone, name = self._state.gone, assignment.name
        owner_uid = assignment.owner_uid or ""
        if name in self._state.nodes or owner_uid in gone:
            return
        if await self._cluster.read_node(name) is not None:
            raise BehindError([f"Node {name}"])
        gone.add(owner_uid)

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
