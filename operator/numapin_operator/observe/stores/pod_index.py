"""The bound pods by node, and the nodes with pods of each namespace. Does no I/O."""

from collections.abc import Collection, Iterable

from numapin_client.resources import Key
from numapin_operator.placement import PodView


class PodIndex:
    """Bound pods; a node's pods and a namespace's nodes are found at once."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[Key, PodView]] = {}
        self._nodes_of: dict[str, set[str]] = {}

    def on(self, node: str) -> Iterable[PodView]:
        """The pods bound to a node, in no order."""
        return self._by_node.get(node, {}).values()

    def nodes_of(self, namespace: str) -> Collection[str]:
        """The nodes to which pods of a namespace are bound."""
        return self._nodes_of.get(namespace, ())

    def get(self, key: Key, node: str) -> PodView | None:
        """A pod of a node; None if it is not bound to it."""
        return self._by_node.get(node, {}).get(key)

    def put(self, key: Key, pod: PodView) -> None:
        """Take in a bound pod."""
        self._by_node.setdefault(pod.node, {})[key] = pod
        self._nodes_of.setdefault(key.namespace, set()).add(pod.node)

    def drop(self, key: Key, node: str) -> bool:
        """Take in that a pod is not on a node any more; returns whether it was."""
        pods = self._by_node.get(node, {})
        if pods.pop(key, None) is None:
            return False
        if not pods:
            del self._by_node[node]
        if all(other.namespace != key.namespace for other in pods):
            nodes = self._nodes_of[key.namespace]
            nodes.discard(node)
            if not nodes:
                del self._nodes_of[key.namespace]
        return True
