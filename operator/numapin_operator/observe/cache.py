"""Everything the operator knows of the cluster, kept so that one node is read in one look."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from numapin_client.resources import Key
from numapin_operator.observe.records import AssignmentView, NodeView, PolicyView
from numapin_operator.observe.versioned_cache import Mirror
from numapin_operator.placement import PodView

NOTHING: Mapping[str, str] = {}


@dataclass(slots=True)
class ClusterState:
    """The cluster as last seen. Each change tells `wake` which nodes must be looked at again.

    `policy_changed` is told which policies' statuses may say something else now.
    """

    wake: Callable[[str], None]
    policy_changed: Callable[[str], None]
    nodes: dict[str, NodeView] = field(default_factory=dict)
    policies: Mirror[PolicyView] = field(default_factory=Mirror)
    assignments: Mirror[AssignmentView] = field(default_factory=Mirror)
    namespaces: dict[str, Mapping[str, str]] = field(default_factory=dict)
    _pods: dict[str, dict[Key, PodView]] = field(default_factory=dict)

    def pods_on(self, node: str) -> Iterable[PodView]:
        """The pods bound to a node, in no order."""
        return self._pods.get(node, {}).values()

    def all_names(self) -> set[str]:
        """Every node that is there, or has an assignment."""
        return self.nodes.keys() | self.assignments.keys()

    def wake_all(self) -> None:
        """Look at every node again."""
        for name in sorted(self.all_names()):
            self.wake(name)

    def put_node(self, node: NodeView) -> None:
        """A node is there, or has changed; a kubelet's mere sign of life changes nothing."""
        if self.nodes.get(node.name) != node:
            self.nodes[node.name] = node
            self._node_changed(node.name)

    def drop_node(self, name: str) -> None:
        """A node has gone."""
        if self.nodes.pop(name, None) is not None:
            self._node_changed(name)

    def put_pod(self, key: Key, pod: PodView) -> None:
        """A bound pod is there, or has changed."""
        there = self._pods.setdefault(pod.node, {})
        if there.get(key) != pod:
            there[key] = pod
            self.wake(pod.node)

    def drop_pod(self, key: Key, node: str) -> None:
        """A pod has gone, or has ended."""
        there = self._pods.get(node, {})
        if there.pop(key, None) is not None:
            self.wake(node)
        if not there:
            self._pods.pop(node, None)

    def put_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """A namespace is there, or has other labels."""
        if self.namespaces.get(name) != labels:
            self.namespaces[name] = labels
            self._namespace_changed(name)

    def drop_namespace(self, name: str) -> None:
        """A namespace has gone; its pods have gone before."""
        self.namespaces.pop(name, None)

    def policies_changed(self, names: Iterable[str]) -> None:
        """Some policies came, went or were edited: any node may be governed otherwise now."""
        changed = set(names)
        for name in changed:
            self.policy_changed(name)
        if changed:
            self.wake_all()

    def assignments_changed(self, names: Iterable[str]) -> None:
        """Some assignments came, went or were reported on."""
        for name in names:
            self.wake(name)

    def _node_changed(self, name: str) -> None:
        self.wake(name)
        for policy in self.policies:
            self.policy_changed(policy)

    def _namespace_changed(self, name: str) -> None:
        """Only policies that look at namespaces' labels care, and only for nodes with its pods."""
        if any(one.spec.pods.namespace_selector is not None for one in self.policies.values()):
            for node, pods in self._pods.items():
                if any(key.namespace == name for key in pods):
                    self.wake(node)
