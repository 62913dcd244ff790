"""Which of several NUMA nodes a pod gets that each have all it asks for: `placement.numaNodes`.

Source: KEP-6007, numa-allocation-strategy, `most-allocated` and `least-allocated`, for single NUMA
nodes.
"""

from dataclasses import dataclass
from typing import Final

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.names import NUMA_NODES_ANNOTATION
from numapin_operator.placement.masks import NO_CPUS, CpuMask, NumaMask, members
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.policy.node_policy import NodePolicy
from numapin_operator.placement.requests import Amounts, PodView

PACKED: Final = "Packed"
SPREAD: Final = "Spread"
CHOICES: Final = (PACKED, SPREAD)


def numa_preference(policy: CpuPolicySpec, pod: PodView) -> str | None:
    """What a pod prefers, `Packed` or `Spread`; None for what the kubelet does.

    An annotation that is no choice counts for nothing, since a pod may get it while it runs.
    """
    placement = policy.placement
    if placement.pod_override == "Allow" and pod.chosen in CHOICES:
        return pod.chosen
    return None if placement.numa_nodes == "None" else placement.numa_nodes


def why_preferred(policy: CpuPolicySpec, pod: PodView) -> str:
    """What decides which of several NUMA nodes a pod gets, for people; empty if nothing does."""
    placement, found = policy.placement, numa_preference(policy, pod)
    of_pod = placement.pod_override == "Allow" and pod.chosen in CHOICES
    by = f"its annotation {NUMA_NODES_ANNOTATION}" if of_pod else "placement.numaNodes"
    most = {PACKED: "most", SPREAD: "least"}
    said = []
    if found is not None:
        said.append(
            f"{by} is {found}: of NUMA nodes that each have all of it, the one is preferred of "
            f"which {most[found]} is given out"
        )
    if placement.pod_override == "Allow" and pod.chosen and not of_pod:
        said.append(
            f"its annotation {NUMA_NODES_ANNOTATION} is {pod.chosen!r}, not {' or '.join(CHOICES)}:"
            " it has no effect"
        )
    if placement.pod_override == "Forbid" and pod.chosen:
        said.append(
            f"its annotation {NUMA_NODES_ANNOTATION} has no effect: placement.podOverride is Forbid"
        )
    return "; ".join(said)


@dataclass(frozen=True, slots=True)
class NumaPreference:
    """One request for which a NUMA node is chosen.

    Attributes:
        policy: the node's policy.
        spreads: whether the emptiest NUMA node is preferred, not the fullest.
        count: the CPUs asked for.
        free: the CPUs that can be given.
        asked: the memory and huge pages asked for.
        memory: what is free of these; None if the policy binds none.
    """

    policy: NodePolicy
    spreads: bool
    count: int
    free: CpuMask
    asked: Amounts
    memory: MemoryTables | None

    def choose(self, fitting: NumaMask) -> NumaMask:
        """The preferred of NUMA nodes that have all that is asked for, the lowest of equal ones.

        One whose free cores do not add up to the CPUs is passed over; if none do, it is the lowest.
        """
        listed, taker = list(members(fitting)), self.policy.cpu_taker
        for numa_node in sorted(listed, key=self._rank):
            mask = NumaMask(1 << numa_node)
            if not self.count or taker.can_take(self.free, self.count, mask):
                return mask
        return NumaMask(1 << listed[0])

    def _rank(self, numa_node: int) -> tuple[float, int]:
        given = self.share_given(numa_node)
        return given if self.spreads else -given, numa_node

    def share_given(self, numa_node: int) -> float:
        """Which share of a NUMA node is given out: the mean of the resources that are asked for."""
        shares = [self._of_cpus(numa_node)] if self.count else []
        shares += [self._of_memory(numa_node, name) for name, _ in self.asked]
        return sum(shares) / len(shares) if shares else 0.0

    def _of_cpus(self, numa_node: int) -> float:
        policy = self.policy
        there = policy.cpu_groups.numa_nodes.get(numa_node, NO_CPUS)
        allocatable = (there & policy.given_out & ~policy.reserved).bit_count()
        return 1 - (there & self.free).bit_count() / allocatable if allocatable else 1.0

    def _of_memory(self, numa_node: int, resource: str) -> float:
        allocatable = self.policy.capacity.get(resource, {}).get(numa_node, 0)
        if self.memory is None or not allocatable:
            return 1.0
        return 1 - self.memory.free.get(resource, {}).get(numa_node, 0) / allocatable
