"""Everything the operator knows of the cluster, indexed so that one node is read at once."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from numapin_client.resources import Key
from numapin_operator.observe.records import AssignmentView, NodeView, PolicyView
from numapin_operator.observe.versioned_cache import Listed, VersionedCache
from numapin_operator.placement import PodView

Json = Mapping[str, Any]


def _ignore(_: str) -> None:
    """Do nothing."""


@dataclass(slots=True)
class ClusterState:
    """The cluster as last observed.

    Attributes:
        wake: called with the name of each node that must be planned again.
        policy_changed: called with the name of each policy whose status may differ now; set by
            the writer of statuses.
        nodes: Nodes by name.
        policies: CpuPolicies by name.
        assignments: NodeAssignments by name, which is their node's.
        namespaces: the labels of each namespace.
    """

    wake: Callable[[str], None]
    policy_changed: Callable[[str], None] = _ignore
    nodes: dict[str, NodeView] = field(default_factory=dict)
    policies: VersionedCache[PolicyView] = field(default_factory=VersionedCache)
    assignments: VersionedCache[AssignmentView] = field(default_factory=VersionedCache)
    namespaces: dict[str, Mapping[str, str]] = field(default_factory=dict)
    _pods: dict[str, dict[Key, PodView]] = field(default_factory=dict)

    def pods_on(self, node: str) -> Iterable[PodView]:
        """The pods bound to a node, in no order."""
        return self._pods.get(node, {}).values()

    def node_names(self) -> set[str]:
        """The names of all nodes that exist or have an assignment."""
        return self.nodes.keys() | self.assignments.keys()

    def wake_all(self) -> None:
        """Have every node planned again."""
        for name in sorted(self.node_names()):
            self.wake(name)

    def put_node(self, node: NodeView) -> None:
        """Take in a node. A kubelet's heartbeat changes nothing that is observed."""
        if self.nodes.get(node.name) != node:
            self.nodes[node.name] = node
            self._node_changed(node.name)

    def drop_node(self, name: str) -> None:
        """Take in that a node was deleted."""
        if self.nodes.pop(name, None) is not None:
            self._node_changed(name)

    def put_pod(self, key: Key, pod: PodView) -> None:
        """Take in a bound pod."""
        pods = self._pods.setdefault(pod.node, {})
        if pods.get(key) != pod:
            pods[key] = pod
            self.wake(pod.node)

    def drop_pod(self, key: Key, node: str) -> None:
        """Take in that a pod of a node has ended or was deleted."""
        pods = self._pods.get(node, {})
        if pods.pop(key, None) is not None:
            self.wake(node)
        if not pods:
            self._pods.pop(node, None)

    def put_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """Take in a namespace and its labels."""
        if self.namespaces.get(name) != labels:
            self.namespaces[name] = labels
            self._namespace_changed(name)

    def drop_namespace(self, name: str) -> None:
        """Take in that a namespace was deleted; its pods were deleted before."""
        self.namespaces.pop(name, None)

    def put_policy(self, body: Json) -> None:
        """Take in a policy; a late state of it changes nothing."""
        if self.policies.is_newer(*_name_and_version(body)):
            self._policies_changed(self.policies.put(PolicyView.decode(body)))

    def drop_policy(self, body: Json) -> None:
        """Take in that a policy was deleted; `body` is its last state."""
        self._policies_changed(self.policies.drop(*_name_and_version(body)))

    def replace_policies(self, listed: Listed[PolicyView]) -> None:
        """Take in a list of all policies."""
        self._policies_changed(self.policies.replace(listed))

    def put_assignment(self, body: Json) -> None:
        """Take in an assignment; a late state of it changes nothing."""
        name, version = _name_and_version(body)
        if self.assignments.is_newer(name, version):
            state = AssignmentView.decode(body, self.assignments.get(name))
            self._assignments_changed(self.assignments.put(state))

    def drop_assignment(self, body: Json) -> None:
        """Take in that an assignment was deleted; `body` is its last state."""
        self._assignments_changed(self.assignments.drop(*_name_and_version(body)))

    def replace_assignments(self, listed: Listed[AssignmentView]) -> None:
        """Take in a list of all assignments."""
        self._assignments_changed(self.assignments.replace(listed))

    def _policies_changed(self, names: Iterable[str]) -> None:
        """Any node may be governed by another policy now."""
        changed = set(names)
        for name in changed:
            self.policy_changed(name)
        if changed:
            self.wake_all()

    def _assignments_changed(self, names: Iterable[str]) -> None:
        for name in names:
            self.wake(name)

    def _node_changed(self, name: str) -> None:
        self.wake(name)
        for policy in self.policies:
            self.policy_changed(policy)

    def _namespace_changed(self, name: str) -> None:
        """Only nodes with pods in it are concerned, and only if a policy selects namespaces."""
        if any(one.spec.pods.namespace_selector is not None for one in self.policies.values()):
            for node, pods in self._pods.items():
                if any(key.namespace == name for key in pods):
                    self.wake(node)


def _name_and_version(body: Json) -> tuple[str, int]:
    metadata = body["metadata"]
    return metadata["name"], int(metadata["resourceVersion"])
