"""Kubelets with a static CPU Manager, played by the planner with the kubelet's faults.

The conformance tests hold its answers equal to those of the kubelet.
"""

from typing import Any, Final

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.hardware.restore import restore_topology
from numapin_api.hardware.status import TopologyStatus
from numapin_campaigns.holding.workload import RULES
from numapin_lab.played.machines import TWO_NUMA_NODES
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import KUBELET, Node, PlacementError, resolve

Json = dict[str, Any]

REASON: Final = "TopologyAffinityError"


class Kubelets:
    """The managers of each node's kubelet."""

    def __init__(self) -> None:
        machine = restore_topology(TopologyStatus.model_validate(TWO_NUMA_NODES))
        self._policy = resolve(machine, CpuPolicySpec.model_validate(RULES), KUBELET)
        self._nodes: dict[str, Node] = {}

    def admits(self, node: str, pod: Json) -> bool:
        """Whether the kubelet of a node accepts a pod; it has its CPUs then."""
        managers = self._nodes.setdefault(node, Node(self._policy))
        try:
            managers.place(parse_pod(pod))
        except PlacementError:
            return False
        return True

    def release(self, node: str, uid: str) -> None:
        """Have what a pod was given free again."""
        self._nodes[node].release(uid)
