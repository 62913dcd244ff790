"""For which containers of a node its enforcer waits before they start. Does no I/O."""

from collections.abc import Collection, Iterable

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.duration import duration_nanoseconds
from numapin_api.meta.matching import selects
from numapin_api.meta.modes import is_enforced
from numapin_api.schema.plain_assignment import LabelSelector, StartGate
from numapin_api.starts.model import MAX_UNASSIGNED, MOST_MILLISECONDS
from numapin_operator.placement.requests import PodView


def start_gate_of(policy: CpuPolicySpec, *, binds_memory: bool) -> StartGate | None:
    """What the node's enforcer must know of the policy to wait; None if no container waits.

    The labels of namespaces are not known on a node: see `unassigned`.
    """
    if policy.start_gate != "Wait" or not is_enforced(policy.mode):
        return None
    selector = policy.pods.pod_selector
    milliseconds = duration_nanoseconds(policy.start_timeout) // 10**6
    return StartGate(
        timeout_milliseconds=min(max(1, milliseconds), MOST_MILLISECONDS),
        pod_selector=LabelSelector.from_wire(selector.to_wire()) if selector else None,
        qos_classes=policy.pods.qos_classes,
        memory=binds_memory,
    )


def unassigned(
    gate: StartGate | None, pods: Iterable[PodView], decided: Collection[str]
) -> tuple[str, ...]:
    """UIDs of the pods that an enforcer would wait for in vain.

    Args:
        gate: what the enforcer knows.
        pods: those of the node.
        decided: UIDs of the pods that get something, are refused or still wait for something.
    """
    if gate is None:
        return ()
    found = (pod.uid for pod in pods if pod.uid not in decided and _is_waited_for(gate, pod))
    return tuple(found)[:MAX_UNASSIGNED]


def _is_waited_for(gate: StartGate, pod: PodView) -> bool:
    if pod.terminal or pod.deleting or pod.claims_unknown or pod.qos not in gate.qos_classes:
        return False
    asks = gate.memory or pod.pod_level is not None or any(one.whole_cpus for one in pod.containers)
    return asks and selects(gate.pod_selector, pod.labels)
