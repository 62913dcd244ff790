"""Which CPUs and NUMA nodes a container gets: pure functions over values.

Read it in this order: `demand` (what a pod asks), `hints` (which NUMA nodes could give it),
`merge` (which of them serve every resource), `take` (which CPUs), `holdings` (what a container is
bound to). `node` does these for one pod after the other, `plan` for a whole NodeAssignment.
"""

from numapin_operator.placement.allocations import Binding, Block, Holding
from numapin_operator.placement.errors import PlacementError, PodFormatError, PolicyError
from numapin_operator.placement.node import Node
from numapin_operator.placement.plan import Plan, Waiting, plan_node, plan_with
from numapin_operator.placement.policy import Rules, resolve, with_reserved
from numapin_operator.placement.requests import (
    CPU,
    HUGEPAGES_PREFIX,
    MEMORY,
    ContainerCpus,
    Kind,
    PodLevel,
    PodView,
    amounts,
)

__all__ = [
    "CPU",
    "HUGEPAGES_PREFIX",
    "MEMORY",
    "Binding",
    "Block",
    "ContainerCpus",
    "Holding",
    "Kind",
    "Node",
    "PlacementError",
    "Plan",
    "PodFormatError",
    "PodLevel",
    "PodView",
    "PolicyError",
    "Rules",
    "Waiting",
    "amounts",
    "plan_node",
    "plan_with",
    "resolve",
    "with_reserved",
]
