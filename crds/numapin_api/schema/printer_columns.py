"""What `kubectl get` prints of each kind: additionalPrinterColumns of the CRDs."""

from typing import Any, Final


def _column(name: str, path: str, text: str, *, kind: str = "string", wide: bool = False) -> Any:
    column = {"name": name, "type": kind, "jsonPath": path, "description": text}
    return column | {"priority": 1} if wide else column


def _condition(kind: str, part: str) -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{part}'


_AGE: Final = _column("Age", ".metadata.creationTimestamp", "Time since creation.", kind="date")

_OUTDATED: Final = "The number of containers that the newest policy would not place as they are."

_POOLS: Final = (
    _column(
        "Exclusive", ".status.pools.exclusive", "CPUs that are exclusive to one container each."
    ),
    _column("Shared", ".status.pools.shared", "CPUs of all other containers."),
    _column("Reserved", ".status.pools.reserved", "CPUs that are never assigned exclusively."),
)
_DRIFT: Final = _column(
    "Drift",
    ".status.driftCount",
    "Cpuset changes by others that were reverted.",
    kind="integer",
)
_PLATFORM: Final = (
    _column("Cgroup", ".status.cgroup.version", "The cgroup version.", kind="integer", wide=True),
    _column("Driver", ".status.cgroup.driver", "The cgroup driver of the kubelet.", wide=True),
    _column("Runtime", ".status.runtime.name", "The container runtime.", wide=True),
    _column(
        "Runtime Version",
        ".status.runtime.version",
        "The version of the container runtime.",
        wide=True,
    ),
    _column(
        "Status", _condition("Ready", "message"), "The message of the condition Ready.", wide=True
    ),
)

POLICY_COLUMNS: Final = [
    _column("Mode", ".spec.mode", "The mode: Static, None or Dynamic."),
    _column(
        "Priority", ".spec.priority", "The policy with the highest number applies.", kind="integer"
    ),
    _column("Nodes", ".status.nodesSelected", "The number of nodes selected.", kind="integer"),
    _column(
        "In Force",
        ".status.nodesInForce",
        "The number of nodes on which the policy is in force.",
        kind="integer",
    ),
    _column(
        "Stalled",
        ".status.nodesStalled",
        "The number of nodes on which the policy cannot be put in force.",
        kind="integer",
    ),
    _column("Refused", ".status.refused", "The number of refused pods.", kind="integer"),
    _column("Outdated", ".status.outdated", _OUTDATED, kind="integer"),
    _column(
        "Ready",
        _condition("Ready", "status"),
        "Whether the policy is in force on every node that it governs.",
    ),
    _AGE,
    _column(
        "Not Served",
        ".status.nodesNotServed",
        "The number of nodes that are not waited for.",
        kind="integer",
        wide=True,
    ),
    _column("Topology", ".spec.topology.policy", "How resources are aligned.", wide=True),
    _column("Memory", ".spec.memory.policy", "How memory is bound.", wide=True),
    _column(
        "Status", _condition("Ready", "message"), "The message of the condition Ready.", wide=True
    ),
]

ASSIGNMENT_COLUMNS: Final = [
    _column("Policy", ".spec.policy.name", "The policy in force."),
    _column("Mode", ".spec.mode", "The mode: Static, None or Dynamic."),
    *_POOLS,
    _column("Refused", ".status.refused", "The number of refused pods.", kind="integer"),
    _column("Outdated", ".status.outdated", _OUTDATED, kind="integer"),
    _DRIFT,
    _column("Ready", _condition("Ready", "status"), "Whether the kernel has what the spec says."),
    _AGE,
    *_PLATFORM,
]

LINES_COLUMNS: Final = [
    _column("Policy", ".spec.policy.name", "The policy in force."),
    _column("Mode", ".spec.mode", "The mode: Static, None or Dynamic."),
    _column("Shared", ".spec.pools.sharedCPUs", "CPUs of all containers without their own."),
    _column("Reserved", ".spec.pools.reservedCPUs", "CPUs that are never assigned exclusively."),
    _column("Refused", ".status.refused", "The number of refused pods.", kind="integer"),
    _column("Outdated", ".status.outdated", _OUTDATED, kind="integer"),
    _column("Release", ".spec.releaseTime", "When everything is given back.", wide=True),
    _AGE,
]
"""Of assignments with lines: what is in force is in the NodeReport."""

REPORT_COLUMNS: Final = [
    *_POOLS,
    _DRIFT,
    _column("Ready", _condition("Ready", "status"), "Whether the kernel has what is assigned."),
    _column("Reason", _condition("Ready", "reason"), "The reason of the condition Ready."),
    _AGE,
    *_PLATFORM,
]

TOPOLOGY_COLUMNS: Final = [
    _column("Offline", ".status.offline", "CPUs that are present but offline."),
    _column("Isolated", ".status.isolated", "CPUs that the kernel isolates (isolcpus)."),
    _AGE,
]
