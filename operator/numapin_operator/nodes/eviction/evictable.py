"""Which refused pods are evicted, and why others are not. Does no I/O."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_api.meta.modes import is_enforced
from numapin_api.schema.plain_assignment import Refusal
from numapin_operator.nodes.decide.returning import kubelet_pins
from numapin_operator.nodes.eviction.history import Cause
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.pods.origin import CRITICAL_PRIORITY
from numapin_operator.observe.records import PolicyView
from numapin_operator.placement import PodView
from numapin_operator.policies.in_force import is_state
from numapin_operator.policies.selection import mark_selected
from numapin_operator.policies.status import policy_fault

SHARES: Final = "it runs in the shared pool"
EVICTED: Final = "it is evicted"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A refused pod that the policy wants evicted."""

    node: str
    refusal: Refusal
    pod: PodView

    @property
    def cause(self) -> Cause:
        """Why it is evicted."""
        owner = self.pod.origin.uid or f"{self.pod.namespace}/{self.pod.name}"
        return Cause(owner, self.node, self.refusal.reason)


def candidates(state: ClusterState, node: str) -> Iterator[Candidate]:
    """The pods of a node that must be evicted, by all that is known now.

    The newest spec refuses it, the governing policy selects it and says `Evict`, it exists, it has
    not ended, and nothing protects it. While the kubelet pins containers, no spec is in force. On a
    paused node nothing changes.
    """
    assignment = state.assignments.get(node)
    if assignment is None or not assignment.spec.refused or kubelet_pins(assignment):
        return
    governing = state.governing(node)
    if governing is None or not evicts(governing) or state.is_paused(node):
        return
    followed = assignment.spec.policy
    if followed is None or not is_state(followed, governing):
        return  # the node waits for its turn in a roll-out
    refused = {
        one.pod_uid: one for one in assignment.spec.refused if one.reason != Reason.INVALID_POD
    }
    placed = {one.pod_uid for one in assignment.spec.containers}
    present = [pod for pod in state.pods_on(node) if pod.uid in refused.keys() - placed]
    for pod in mark_selected(governing.spec.pods, present, state.namespaces):
        if pod.selected and not pod.deleting and not pod.terminal and not protection(pod):
            yield Candidate(node, refused[pod.uid], pod)


def evicts(policy: PolicyView) -> bool:
    """Whether a policy wants refused pods evicted."""
    spec = policy.spec
    is_on = is_enforced(spec.mode) and spec.on_unsatisfiable == "Evict"
    return is_on and policy_fault(policy) is None


def protection(pod: PodView) -> str:
    """Why a pod is never evicted; empty if nothing protects it.

    Source for static and critical pods: Kubernetes, "Node-pressure Eviction".
    """
    origin = pod.origin
    if pod.problem:
        return "another node would not help it"
    if origin.kind == "DaemonSet":
        return "its DaemonSet would create it again on this node"
    if origin.kind == "Node":
        return "it is a static pod, which the kubelet would start again"
    if origin.priority >= CRITICAL_PRIORITY:
        return "its priority is that of a critical pod"
    return ""


def consequence(policy: PolicyView | None, pod: PodView | None) -> str:
    """What happens to a refused pod now, as its Event says it."""
    if policy is None or not evicts(policy):
        return SHARES
    protected = protection(pod) if pod is not None else ""
    return f"{SHARES}; it is not evicted because {protected}" if protected else EVICTED
