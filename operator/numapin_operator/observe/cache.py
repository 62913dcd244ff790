"""Everything the operator knows of the cluster, indexed so that one node is read at once.

Does no I/O.
"""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Protocol

from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_client.resources import Key
from numapin_operator.observe.assignments.report import ReportView, TopologyView
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.holding.held_pod import HeldPod
from numapin_operator.observe.holding.store import HeldPods
from numapin_operator.observe.records import NodeView, PolicyView
from numapin_operator.observe.revisions import Revision, Revisions
from numapin_operator.observe.stores.pod_index import PodIndex
from numapin_operator.observe.stores.ranking import Ranking
from numapin_operator.observe.stores.tombstones import Tombstones, node_key
from numapin_operator.observe.stores.versioned_cache import Listed, VersionedCache
from numapin_operator.placement import PodView

Json = Mapping[str, Any]


class Wake(Protocol):
    """Takes the name of a node that must be planned again."""

    def __call__(self, name: str, /, *, urgent: bool = False) -> object:
        """Urgent nodes come before others: a pod waits for its CPUs, or CPUs have become free."""


def _ignore(*_: object) -> None:
    """Do nothing."""


def _ignore_node(_: str, /, *, urgent: bool = False) -> None:
    """Do nothing."""


@dataclass(slots=True)
class ClusterState:
    """The cluster as last observed.

    What decides and writes lasts for a term of leadership. It sets `wake`, `policy_changed`,
    `ranking_changed`, `annotated` and `counted` when it begins; `tell_nobody` ends that.

    Attributes:
        wake: called with the name of each node that must be planned again.
        policy_changed: called with the name of each policy whose status may differ now.
        ranking_changed: called with nodes whose policies, or their order, may differ now.
        nodes: Nodes by name.
        policies: CpuPolicies by name.
        assignments: NodeAssignments by name, which is their node's, with what enforcers report.
        reports: NodeReports by name.
        topologies: NodeTopologies by name.
        namespaces: the labels of each namespace.
        lost: by node, the last spec with pools of an assignment that was deleted, or that came back
            in an older state, as from a backup; until the operator has written it again.
        revisions: the generations of policies that have reached every node.
        writes_lines: whether enforcers may have reports of their own, and assignments with lines.
        gone: Nodes and pods that were observed and are gone.
        held: pods that wait for a node, while they are watched.
        is_divided: whether other shards have nodes that are not here.
        pod_bound: called with each bound pod that was not known before.
        pod_gone: called with the UID of each pod that ended or was deleted.
        assignment_sent: called with each NodeAssignment as the API server sent it.
        annotated: called with the node of each pod of which only annotations have changed.
        counted: called with the node of each pod that other schedulers count from now on, or do no
            more, while nothing else of it has changed but annotations.
        node_reported: called with each NodeAssignment whose NodeReport or NodeTopology changed.
    """

    wake: Wake = _ignore_node
    policy_changed: Callable[[str], None] = _ignore
    ranking_changed: Callable[[AbstractSet[str]], None] = _ignore
    nodes: dict[str, NodeView] = field(default_factory=dict)
    policies: VersionedCache[PolicyView] = field(default_factory=VersionedCache)
    assignments: VersionedCache[AssignmentView] = field(default_factory=VersionedCache)
    reports: dict[str, ReportView] = field(default_factory=dict)
    topologies: dict[str, TopologyView] = field(default_factory=dict)
    namespaces: dict[str, Mapping[str, str]] = field(default_factory=dict)
    lost: dict[str, NodeAssignmentSpec] = field(default_factory=dict)
    revisions: Revisions = field(default_factory=Revisions)
    writes_lines: bool = True
    gone: Tombstones = field(default_factory=Tombstones)
    held: HeldPods = field(default_factory=HeldPods)
    is_divided: bool = False
    pod_bound: Callable[[PodView], object] = _ignore
    pod_gone: Callable[[str], object] = _ignore
    assignment_sent: Callable[[Json], object] = _ignore
    node_reported: Callable[[AssignmentView], object] = _ignore
    annotated: Callable[[str], object] = _ignore
    counted: Callable[[str], object] = _ignore
    _pods: PodIndex = field(default_factory=PodIndex)
    _ranking: Ranking = field(default_factory=Ranking)
    _release_delays: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.revisions.changed = self._revision_changed

    def tell_nobody(self) -> None:
        """Report no more changes, but those that concern the process and not a term."""
        self.wake = _ignore_node
        self.policy_changed = self.ranking_changed = self.annotated = self.counted = _ignore

    def pods_on(self, node: str) -> Iterable[PodView]:
        """The pods bound to a node, in no order."""
        return self._pods.on(node)

    def governing(self, node: str) -> PolicyView | None:
        """The policy that governs a node."""
        return None if (name := self._ranking.governing(node)) is None else self.policies[name]

    def policies_of(self, node: str) -> tuple[PolicyView, ...]:
        """The policies that select a node, the governing one first."""
        return tuple(self.policies[name] for name in self._ranking.of(node))

    def ranking_of(self, node: str) -> tuple[str, ...]:
        """The names of the policies that select a node, the governing one first."""
        return self._ranking.of(node)

    def release_delay_of(self, node: str) -> str | None:
        """`spec.releaseDelay` of the policy that governs a node, or governed it last.

        It is observed by every replica at all times: who leads next may never have planned the node
        under that policy.
        """
        return self._release_delays.get(node)

    def is_paused(self, name: str) -> bool:
        """Whether nothing may be changed on a node."""
        node = self.nodes.get(name)
        return node is not None and bool(node.paused)

    def governed(self, policy: str) -> int:
        """How many nodes a policy governs."""
        return len(self._ranking.governed(policy))

    def governed_nodes(self, policy: str) -> AbstractSet[str]:
        """The nodes that a policy governs."""
        return self._ranking.governed(policy)

    def node_names(self) -> set[str]:
        """The names of all nodes that exist, or of which any object does."""
        named: tuple[Mapping[str, object], ...]
        named = (self.nodes, self.assignments, self.reports, self.topologies)
        return set(chain.from_iterable(named))

    def wake_all(self) -> None:
        """Have every node planned again."""
        for name in sorted(self.node_names()):
            self.wake(name)

    def put_node(self, node: NodeView) -> None:
        """Take in a node. A kubelet's heartbeat changes nothing that is observed."""
        before = self.nodes.get(node.name)
        self.gone.discard(node_key(node.name))
        if before != node:
            self.nodes[node.name] = node
            self._node_changed(node.name)

    def drop_node(self, name: str) -> None:
        """Take in that a node was deleted."""
        node = self.nodes.pop(name, None)
        if node is not None:
            self.gone.add(node_key(name))
            self.lost.pop(name, None)
            self._node_changed(name)

    def put_pod(self, key: Key, pod: PodView) -> None:
        """Take in a bound pod. It is urgent if it is new or ends.

        Its annotations decide nothing, nor does what other schedulers count of it: a change of
        these alone wakes no node.
        """
        before = self._pods.get(key, pod.node)
        if before == pod:
            return
        if before is not None and _decides_like(before, pod):
            self._pods.put(key, pod)
            if (before.annotated, before.told) != (pod.annotated, pod.told):
                self.annotated(pod.node)
            if before.counted != pod.counted:
                self.counted(pod.node)
            return
        if before is not None and before.uid != pod.uid:
            self.gone.add(before.uid)
        self.gone.discard(pod.uid)
        self._pods.put(key, pod)
        if before is None or before.uid != pod.uid:
            self.pod_bound(pod)
        ends = pod.terminal or pod.deleting
        ended = before is not None and (before.terminal or before.deleting)
        self.wake(pod.node, urgent=before is None or ends > ended)

    def drop_pod(self, key: Key, node: str) -> None:
        """Take in that a pod of a node has ended or was deleted."""
        before = self._pods.get(key, node)
        if before is not None and self._pods.drop(key, node):
            self.gone.add(before.uid)
            self.pod_gone(before.uid)
            self.wake(node, urgent=True)

    def put_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """Take in a namespace and its labels."""
        before = self.namespaces.get(name)
        self.namespaces[name] = labels
        keys = self._namespace_keys()
        if keys and (before is None or any(before.get(key) != labels.get(key) for key in keys)):
            for node in self._pods.nodes_of(name):
                self.wake(node)

    def drop_namespace(self, name: str) -> None:
        """Take in that a namespace was deleted; its pods were deleted before."""
        self.namespaces.pop(name, None)

    def put_policy(self, body: Json) -> None:
        """Take in a policy; a late state of it changes nothing."""
        if self.policies.is_newer(*_name_and_version(body)):
            self.put_policy_view(PolicyView.decode(body))

    def put_policy_view(self, policy: PolicyView) -> None:
        """Take in a decoded policy, unless it is not newer than what is known."""
        self._policies_changed(dict(self.policies), self.policies.put(self._here(policy)))

    def drop_policy(self, body: Json) -> None:
        """Take in that a policy was deleted; `body` is its last state."""
        dropped = _name_and_version(body)
        self._policies_changed(dict(self.policies), self.policies.drop(*dropped))

    def replace_policies(self, listed: Listed[PolicyView]) -> None:
        """Take in a list of all policies."""
        listed = Listed(tuple(map(self._here, listed.states)), listed.version)
        self._policies_changed(dict(self.policies), self.policies.replace(listed))

    def _here(self, policy: PolicyView) -> PolicyView:
        """A policy with what has no effect while several shards divide the nodes."""
        if not self.is_divided or policy.spec.on_unsatisfiable != "Hold":
            return policy
        return replace(policy, divided=("onUnsatisfiable: Hold with --shards above 1",))

    def replace_held(self, old: HeldPod | None, new: HeldPod | None) -> None:
        """Take in a pod that is not bound.

        `new` is None when it has been bound, has ended or is gone: that is no proof of which.
        """
        is_over = old is not None and (new is None or new.uid != old.uid)
        if old is not None and is_over and (node := self.held.drop(old.uid)) is not None:
            self.wake(node, urgent=True)
        if new is not None:
            self.held.put(new)

    def put_assignment(self, state: AssignmentView) -> None:
        """Take in an assignment, unless it is not newer than what is known.

        A container that no longer runs is urgent: a pod may wait for its CPUs. A change of nothing
        that decisions use wakes no node.
        """
        before = self.assignments.get(state.name)
        if state is not before:  # else it was taken in with the answer to our own write
            state = self.with_report(state)
        if self._take_assignment(before, state):
            self._wake_for(before, state)

    def put_read(self, name: str, fresh: AssignmentView | None) -> None:
        """Take in an assignment as it was read for a decision, which wakes no node; None: none."""
        before = self.assignments.get(name)
        if fresh is not None:
            self._take_assignment(before, self.with_report(fresh))
        elif before is not None:
            self._drop_assignment(name, before.version)

    def _take_assignment(self, before: AssignmentView | None, state: AssignmentView) -> bool:
        is_taken = bool(self.assignments.put(state))
        if is_taken:
            self._note_lost(before, state)
        return is_taken

    def _drop_assignment(self, name: str, version: int) -> bool:
        before = self.assignments.get(name)
        is_dropped = bool(self.assignments.drop(name, version))
        if is_dropped:
            self._note_lost(before, None)
        return is_dropped

    def with_report(self, state: AssignmentView) -> AssignmentView:
        """An assignment with what its enforcer reports in objects of its own."""
        return state.reported(self.reports.get(state.name), self.topologies.get(state.name))

    def takes_lines(self, name: str) -> bool:
        """Whether a node's assignment is written with lines: its enforcer reads them."""
        report, known = self.reports.get(name), self.assignments.get(name)
        is_read = known.takes_lines if known else report is not None and report.is_written
        return self.writes_lines and is_read

    def put_report(self, report: ReportView) -> None:
        """Take in what an enforcer reports."""
        self.reports[report.name] = report
        self._report_changed(report.name)

    def drop_report(self, name: str) -> None:
        """Take in that a NodeReport was deleted."""
        if self.reports.pop(name, None) is not None:
            self._report_changed(name)
            self.wake(name)

    def put_topology(self, topology: TopologyView) -> None:
        """Take in the hardware of a node."""
        self.topologies[topology.name] = topology
        self._report_changed(topology.name)

    def drop_topology(self, name: str) -> None:
        """Take in that a NodeTopology was deleted."""
        if self.topologies.pop(name, None) is not None:
            self._report_changed(name)
            self.wake(name)

    def _report_changed(self, name: str) -> None:
        before = self.assignments.get(name)
        if before is None:
            self.wake(name)
            return
        after = self.with_report(before)
        self.assignments.amend(after)
        self._wake_for(before, after)
        self.node_reported(after)

    def _wake_for(self, before: AssignmentView | None, after: AssignmentView) -> None:
        if before is None or not after.decides_like(before):
            ended = before is not None and set(before.status.running) - set(after.status.running)
            self.wake(after.name, urgent=bool(ended))

    def drop_assignment(self, name: str, version: int) -> None:
        """Take in that an assignment was deleted by this version."""
        if self._drop_assignment(name, version):
            self.wake(name)

    def replace_assignments(self, listed: Listed[AssignmentView]) -> None:
        """Take in a list of all assignments."""
        before = dict(self.assignments)
        listed = Listed(tuple(map(self.with_report, listed.states)), listed.version)
        for name in self.assignments.replace(listed):
            self._note_lost(before.get(name), self.assignments.get(name))
            self.wake(name)

    def _revision_changed(self, revision: Revision) -> None:
        for node in self._ranking.governed(revision.policy):
            self._note_release_delay(node)
        if revision.policy in self.policies and not self.revisions.is_stored(revision):
            self.policy_changed(revision.policy)

    def _note_lost(self, before: AssignmentView | None, after: AssignmentView | None) -> None:
        """Remember what is in force on a node although its assignment does not say it any more.

        That ends when an operator has written the assignment again: the one that leads is told by
        its own write, and all others see a later generation. A deleted Node's is not remembered:
        pods that run there are found in the status.
        """
        if before is None or before.spec.pools is None or before.name not in self.nodes:
            return
        if after is not None and after.uid != before.uid:
            return
        if after is None or after.generation < before.generation:
            self.lost.setdefault(before.name, before.spec)
        elif after.generation > before.generation:
            self.lost.pop(before.name, None)

    def _policies_changed(self, before: Mapping[str, PolicyView], names: Iterable[str]) -> None:
        """Wake the nodes that an edited policy governs now or governed before.

        Labels, annotations and the status of a policy, which we write ourselves, wake no node.
        """
        edited = []
        for name in names:
            old, new = before.get(name), self.policies.get(name)
            if old is None or new is None or not new.decides_like(old):
                edited.append(name)
            elif new.status == old.status:
                continue
            if old is not None and (new is None or new.uid != old.uid):
                self.revisions.forget(old.uid)
            self.policy_changed(name)
        concerned = {node for name in edited for node in self._ranking.governed(name)}
        changed = {name: self.policies.get(name) for name in edited}
        if nodes := self._ranking.policies_changed(changed):
            self.ranking_changed(nodes)
        concerned.update(node for name in edited for node in self._ranking.governed(name))
        for node in sorted(concerned):
            self._note_release_delay(node)
            self.wake(node)

    def _node_changed(self, name: str) -> None:
        node = self.nodes.get(name)
        is_open = node is not None and not node.released
        if self._ranking.node_changed(name, node.labels if node and is_open else None):
            self.ranking_changed({name})
        self._note_release_delay(name)
        self.wake(name)

    def _note_release_delay(self, node: str) -> None:
        if node not in self.nodes:
            self._release_delays.pop(node, None)
        elif policy := self.governing(node):
            done = None if policy.says_delay else self.revisions.newest(policy)
            self._release_delays[node] = (done or policy).spec.release_delay

    def _namespace_keys(self) -> set[str]:
        """The labels of namespaces that the policies' selectors use."""
        keys: set[str] = set()
        for policy in self.policies.values():
            if selector := policy.spec.pods.namespace_selector:
                keys |= {*selector.match_labels, *(one.key for one in selector.match_expressions)}
        return keys


def _decides_like(before: PodView, after: PodView) -> bool:
    """Whether two states of a pod lead to the same decisions."""
    annotated, told, counted = after.annotated, after.told, after.counted
    return replace(before, annotated=annotated, told=told, counted=counted) == after


def _name_and_version(body: Json) -> tuple[str, int]:
    return body["metadata"]["name"], int(body["metadata"]["resourceVersion"])
