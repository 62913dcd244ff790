"""What is absent from the cache is read from the API server before it counts as gone.

The requests are those of the `Cluster` that it is given. Does no I/O.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from numapin_client.errors import ClientError
from numapin_client.resources import Key
from numapin_operator.cluster import Cluster
from numapin_operator.nodes.picture import pods_on
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.pods.mirror_pods import with_static_uids
from numapin_operator.observe.stores.tombstones import node_key
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

    async def confirm(self, name: str) -> tuple[PodView, ...]:
        """Pods with CPUs on a node that exist although their watch has not delivered them yet.

        Raises:
            BehindError: the Node itself is such an object.
            ClientError: it is not known whether an object is gone.
        """
        assignment = self._state.assignments.get(name)
        if assignment is None:
            return ()
        await self._confirm_node(assignment)
        if (lost := self._state.lost.get(name)) is not None:
            assignment = replace(assignment, spec=lost)
        return await self._missing_pods(assignment, pods_on(self._state, name))

    async def _confirm_node(self, assignment: AssignmentView) -> None:
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

    async def _missing_pods(
        self, assignment: AssignmentView, present: Iterable[PodView]
    ) -> tuple[PodView, ...]:
        """Pods with CPUs that exist although they are not among those present.

        Raises:
            ClientError: one cannot be read.
        """
        known = {pod.uid for pod in present}.union(assignment.status.running)
        found = []
        for uid, key in dict(_pods_of(assignment)).items():
            if uid in known or uid in self._state.gone or uid in self._state.held.pods:
                continue
            pod = await self._cluster.read_pod(key)
            if pod is not None and pod.node not in ("", assignment.name) and pod.uid == uid:
                continue  # it had a place here, and was bound elsewhere
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
