"""Why a pod with our gate is not held. Does no I/O."""

from collections.abc import Mapping

from numapin_api import names
from numapin_operator.observe.holding.held_pod import HeldPod


def why_not_held(pod: HeldPod, namespace: Mapping[str, str], *, may_be_held: bool) -> str:
    """Why nothing holds a pod, for people; empty if it is held.

    Args:
        pod: the pod, which has our gate.
        namespace: the labels of its namespace.
        may_be_held: whether a policy holds it for a node that it may use.
    """
    if namespace.get(names.HOLD_LABEL) != names.HOLD_ENABLED:
        return f"its namespace has no label {names.HOLD_LABEL}={names.HOLD_ENABLED}"
    if pod.pod.problem:
        return f"it cannot be used: {pod.pod.problem}"
    if pod.unjudged:
        return f"the scheduler decides by {pod.unjudged} too, which numapin does not look at"
    if not may_be_held:
        return (
            "no node that its selector and affinity allow has a policy with onUnsatisfiable: Hold "
            "that would give it CPUs or memory of its own"
        )
    return ""
