"""On which nodes a DaemonSet has a pod.

Source: Kubernetes v1.36, pkg/controller/daemon, `NodeShouldRunDaemonPod`: the node has the labels
of nodeSelector and of the required node affinity, and no taint that is not tolerated.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from numapin_cli.inputs.manifests import section
from numapin_operator.observe.holding.node_rules import NodeRules, Toleration, taints_of

_NO_SCHEDULE: Final = "NoSchedule"
_NO_EXECUTE: Final = "NoExecute"

_TOLERATED: Final = {
    "node.kubernetes.io/not-ready": _NO_EXECUTE,
    "node.kubernetes.io/unreachable": _NO_EXECUTE,
    "node.kubernetes.io/disk-pressure": _NO_SCHEDULE,
    "node.kubernetes.io/memory-pressure": _NO_SCHEDULE,
    "node.kubernetes.io/pid-pressure": _NO_SCHEDULE,
    "node.kubernetes.io/unschedulable": _NO_SCHEDULE,
}
"""The taints that every pod of a DaemonSet tolerates, with the only effect for which it does."""

_ON_THE_HOST: Final = {"node.kubernetes.io/network-unavailable": _NO_SCHEDULE}
"""The same, of a pod in the network of its host."""


def runs_on(template: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    """Whether the controller creates a pod of this template on a node."""
    spec, metadata = section(template, "spec"), section(node, "metadata")
    name = str(metadata.get("name"))
    if spec.get("nodeName") not in {None, "", name}:
        return False
    rules = NodeRules.parse(spec)
    always = _TOLERATED | (_ON_THE_HOST if spec.get("hostNetwork") is True else {})
    added = (Toleration(key, "Exists", "", effect) for key, effect in always.items())
    rules = replace(rules, tolerations=(*rules.tolerations, *added))
    taints = taints_of(section(node, "spec"))
    return rules.allow(name, section(metadata, "labels")) and rules.repelled_by(taints) is None
