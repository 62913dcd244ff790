"""A pod is placed on some NUMA nodes alone: those near which it must be, or would rather be."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from numapin_operator.placement.cpumanager.pool import CpuPool
from numapin_operator.placement.errors import PlacementError
from numapin_operator.placement.masks import NumaMask
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.policy.node_policy import NodePolicy
from numapin_operator.placement.policy.pod_requests import required
from numapin_operator.placement.requests import PodView


@contextmanager
def only_near(
    policy: NodePolicy, cpus: CpuPool, memory: MemoryTables | None, numa_nodes: NumaMask
) -> Iterator[None]:
    """Give out CPUs and memory of these NUMA nodes alone for a while.

    Sets of NUMA nodes with others have what these have of them, so that the hints that are merged
    are those for which these NUMA nodes suffice.
    """
    there = policy.cpu_groups.cpus_in(numa_nodes)
    with ExitStack() as limited:
        limited.enter_context(cpus.only(there, policy.cpu_groups.whole_cores(there)))
        if memory is not None:
            limited.enter_context(memory.only(numa_nodes))
        yield


@contextmanager
def as_required(
    policy: NodePolicy, cpus: CpuPool, memory: MemoryTables | None, pod: PodView
) -> Iterator[None]:
    """Give out what is near what a pod requires, if it requires something that there is.

    A refusal meanwhile says that it must be near.
    """
    wish = required(policy.spec, policy.topology, pod)
    if wish is None or wish.problem:
        yield
        return
    try:
        with only_near(policy, cpus, memory, wish.numa_nodes):
            yield
    except PlacementError as refused:
        say_near(policy, pod, refused)
        raise


def say_near(policy: NodePolicy, pod: PodView, refused: PlacementError) -> None:
    """Add to a refusal that the pod must be near something, if there is such a thing."""
    wish = required(policy.spec, policy.topology, pod)
    if wish is not None and not wish.problem:
        near = f"near {wish.meaning}, as annotation {wish.annotation} demands"
        refused.problem = f"{near}: {refused.problem}"
