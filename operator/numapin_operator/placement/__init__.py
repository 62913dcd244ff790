"""Which CPUs and NUMA nodes a container gets: pure functions over values.

Read in this order: `requests` (what a pod asks for), `policy` (a CpuPolicy on one machine),
`topologymanager` (which NUMA nodes can serve every resource), `cpumanager` (which CPUs),
`memorymanager` (which memory), `devicemanager` (which devices), `allocations` (what a pod has been
given). `pods` places one pod, `machine` one after the other, `plan` makes a whole NodeAssignment;
`moves` finds what to move so that a pod fits. Other packages import from here.
"""

from numapin_operator.placement.allocations import Block, ContainerAllocation, PodAllocation
from numapin_operator.placement.assignment.kept import entries_by_pod
from numapin_operator.placement.assignment.moving import (
    dropped,
    finished,
    is_dropped,
    is_giving_back,
    noticed,
)
from numapin_operator.placement.cpumanager.crossing import crossing_groups
from numapin_operator.placement.devicemanager.claimed import is_driver, with_claimed
from numapin_operator.placement.devicemanager.given import (
    AwaitsDevices,
    NodeDevices,
    with_named,
)
from numapin_operator.placement.devicemanager.pool import NO_DEVICES, Device, Devices
from numapin_operator.placement.errors import PlacementError, PodFormatError, PolicyError
from numapin_operator.placement.kubelet_quirks import KUBELET, NO_QUIRKS, KubeletQuirks
from numapin_operator.placement.machine.node import Node
from numapin_operator.placement.machine.numa_amounts import (
    Amount,
    NumaAmounts,
    numa_amounts,
    promised_amounts,
)
from numapin_operator.placement.masks import numa_mask
from numapin_operator.placement.memorymanager.memory_capacity import memory_without_cpus
from numapin_operator.placement.memorymanager.pod_blocks import bound_already
from numapin_operator.placement.memorymanager.within_memory import within_memory
from numapin_operator.placement.moves import (
    Move,
    MoveRules,
    Moves,
    Searched,
    SearchSpace,
    fewest_moves,
)
from numapin_operator.placement.new_pods.queue import Queued
from numapin_operator.placement.outdated import Outdated, mark_outdated
from numapin_operator.placement.plan import Plan, Waiting, plan_node, plan_with
from numapin_operator.placement.pods.numa_preference import numa_preference, why_preferred
from numapin_operator.placement.policy.admission import Allocatable, Unaccepted, hold_unaccepted
from numapin_operator.placement.policy.node_policy import NodePolicy, resolve
from numapin_operator.placement.policy.pod_requests import why_near
from numapin_operator.placement.policy.reservation import (
    SystemReservation,
    cpu_reservation_mismatch,
    free_hugepages,
    reservation_mismatch,
    reserved_offline,
    used_memory,
    with_reserved,
)
from numapin_operator.placement.requests import (
    CPU,
    HUGEPAGES_PREFIX,
    MEMORY,
    Amounts,
    ClaimRef,
    ContainerKind,
    ContainerView,
    MirrorClaim,
    Origin,
    PodLevel,
    PodRequests,
    PodView,
    amounts,
    container_memory,
    exclusive_cpus,
    pod_cpus,
    pod_memory,
    pod_requests,
)
from numapin_operator.placement.resize.settled import forget_settled
from numapin_operator.placement.staying import present_node

__all__ = [
    "CPU",
    "HUGEPAGES_PREFIX",
    "KUBELET",
    "MEMORY",
    "NO_DEVICES",
    "NO_QUIRKS",
    "Allocatable",
    "Amount",
    "Amounts",
    "AwaitsDevices",
    "Block",
    "ClaimRef",
    "ContainerAllocation",
    "ContainerKind",
    "ContainerView",
    "Device",
    "Devices",
    "KubeletQuirks",
    "MirrorClaim",
    "Move",
    "MoveRules",
    "Moves",
    "Node",
    "NodeDevices",
    "NodePolicy",
    "NumaAmounts",
    "Origin",
    "Outdated",
    "PlacementError",
    "Plan",
    "PodAllocation",
    "PodFormatError",
    "PodLevel",
    "PodRequests",
    "PodView",
    "PolicyError",
    "Queued",
    "SearchSpace",
    "Searched",
    "SystemReservation",
    "Unaccepted",
    "Waiting",
    "amounts",
    "bound_already",
    "container_memory",
    "cpu_reservation_mismatch",
    "crossing_groups",
    "dropped",
    "entries_by_pod",
    "exclusive_cpus",
    "fewest_moves",
    "finished",
    "forget_settled",
    "free_hugepages",
    "hold_unaccepted",
    "is_driver",
    "is_dropped",
    "is_giving_back",
    "mark_outdated",
    "memory_without_cpus",
    "noticed",
    "numa_amounts",
    "numa_mask",
    "numa_preference",
    "plan_node",
    "plan_with",
    "pod_cpus",
    "pod_memory",
    "pod_requests",
    "present_node",
    "promised_amounts",
    "reservation_mismatch",
    "reserved_offline",
    "resolve",
    "used_memory",
    "why_near",
    "why_preferred",
    "with_claimed",
    "with_named",
    "with_reserved",
    "within_memory",
]
