"""Names in the API: group, version, kinds, field managers and accounts, each once."""

from typing import Final

GROUP: Final = "numapin.io"
VERSION: Final = "v1beta1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
ALPHA: Final = "v1alpha1"
"""The version of numapin 0.1: served and stored too, so that going back to 0.1 loses nothing."""

CPU_POLICY_KIND: Final = "CpuPolicy"
CPU_POLICY_PLURAL: Final = "cpupolicies"
CPU_POLICY_SINGULAR: Final = "cpupolicy"
CPU_POLICY_SHORT: Final = "cpupol"

NODE_ASSIGNMENT_KIND: Final = "NodeAssignment"
NODE_ASSIGNMENT_PLURAL: Final = "nodeassignments"
NODE_ASSIGNMENT_SINGULAR: Final = "nodeassignment"
NODE_ASSIGNMENT_SHORT: Final = "nodeasg"

NODE_REPORT_KIND: Final = "NodeReport"
NODE_REPORT_PLURAL: Final = "nodereports"
NODE_REPORT_SINGULAR: Final = "nodereport"
NODE_REPORT_SHORT: Final = "noderep"

NODE_TOPOLOGY_KIND: Final = "NodeTopology"
NODE_TOPOLOGY_PLURAL: Final = "nodetopologies"
NODE_TOPOLOGY_SINGULAR: Final = "nodetopology"
NODE_TOPOLOGY_SHORT: Final = "nodetopo"

OPERATOR_FIELD_MANAGER: Final = "numapin-operator"
ENFORCER_FIELD_MANAGER: Final = "numapin-enforcer"

NAMESPACE: Final = "numapin-system"
OPERATOR_SERVICE_ACCOUNT: Final = "numapin-operator"
ENFORCER_SERVICE_ACCOUNT: Final = "numapin-enforcer"
LEADER_LEASE: Final = "numapin-operator"
HEARTBEAT_LABELS: Final = {
    "app.kubernetes.io/component": "enforcer",
    "app.kubernetes.io/name": "numapin",
}
"""On the Leases that enforcers renew, each named after its node."""

REFUSED_ANNOTATION: Final = f"{GROUP}/refused"
"""On refused pods: the reason and the numbers, for people; see docs/operations.md."""

HELD_ANNOTATION: Final = f"{GROUP}/held"
"""On pods that wait for a node: the reason and the numbers, for people; see docs/holding.md."""

HOLD_GATE: Final = f"{GROUP}/placement"
"""The scheduling gate of pods that wait until a node has a place for them."""

HOLD_LABEL: Final = f"{GROUP}/hold"
HOLD_ENABLED: Final = "enabled"
"""Label and value of namespaces of which pods may be held."""

CPUS_ANNOTATION: Final = f"{GROUP}/cpus"
"""On pods: which exclusive CPUs each container has, and which will leave it; see docs/notice.md."""

NUMA_NODES_ANNOTATION: Final = f"{GROUP}/numa-nodes"
"""On pods: Packed or Spread, where the policy allows it; see docs/operator.md."""

PREFER_NEAR_ANNOTATION: Final = f"{GROUP}/prefer-near"
REQUIRE_NEAR_ANNOTATION: Final = f"{GROUP}/require-near"
"""On pods: places such as `net/ens1f0`, where the policy allows it; see docs/operator.md."""

NODE_MODE_ANNOTATION: Final = f"{GROUP}/node-mode"
PAUSED: Final = "Paused"
RELEASED: Final = "Released"
"""On Nodes: nothing changes there, or no policy selects them; see docs/operator.md."""

MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
MANAGED_BY: Final = "numapin"
"""On NodeResourceTopologies that numapin writes; see docs/scheduling.md."""

NUMA_NODE_ATTRIBUTE: Final = f"{GROUP}/numaNode"
"""Of a zone: the ID of its NUMA node."""
