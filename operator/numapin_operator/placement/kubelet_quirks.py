"""Where the kubelet's managers err: what they answer then, and what numapin answers instead.

The planner answers as numapin unless it is given `KUBELET`, as `numapin simulate` does.
Source of every quirk: Kubernetes v1.36, `pkg/kubelet/cm`, at the symbol named.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletQuirks:
    """Which faults of the kubelet to repeat.

    Attributes:
        counts_sockets_by_average: a socket counts as free when as many of its CPUs are free as the
            average socket has; then all of it is taken, CPUs in use included. numapin takes a
            socket whole only if all of it is free. Source: cpumanager, `isSocketFree`.
        refuses_overwritten_choice: a choice of NUMA nodes that was overwritten while the search
            went on (see `overwritten_choice`) may hold too few CPUs, and the container is refused.
            numapin then takes the CPUs from the NUMA nodes that the search had chosen.
            Source: cpumanager, `takeByTopologyNUMADistributed`.
        distributes_over_sockets: CPUs that are distributed come from several sockets though one has
            room, even with align-by-socket. numapin takes them from one socket; so does the kubelet
            of v1.37 in most cases. Source: cpumanager, `takeByTopologyNUMADistributed`.
        splits_cores: with full-pcpus-only free CPUs are counted and taken by NUMA node, also those
            of cores that are not free there with all their threads; a container gets parts of cores
            then. numapin counts and takes whole cores alone, or refuses.
            Source: cpumanager, `allocateCPUs`, `generateCPUTopologyHints`.
        aligns_to_all_sockets: with align-by-socket CPUs come from all sockets of the NUMA nodes,
            also where one of them has room. numapin takes them from one where a NUMA node has parts
            of several sockets. Source: cpumanager, `getAlignedCPUs`.
        counts_free_cpus_last: whether enough CPUs are free is found out while they are taken.
            numapin counts them first. Source: cpumanager, `allocateCPUs`.
        empties_shared_pool: the last shared CPU may be given away or reserved strictly. numapin
            refuses the pod, or the policy. Source: cpumanager, `allocateCPUs`.
        shares_released_cpus_blindly: released CPUs go to the shared pool even if they are strictly
            reserved or offline by now. numapin leaves those out. Source: cpumanager, `releaseCPUs`.
        leaks_cpus_of_refused_pods: CPUs given to a pod as a whole are lost if its containers then
            do not fit. numapin returns them. Source: cpumanager, `AllocatePod`.
        keeps_unused_pod_cpus: CPUs of a pod that none of its containers runs on stay the pod's.
            numapin leaves them in the shared pool. Source: cpumanager, `AllocatePod`.
        binds_to_init_containers: containers must have CPUs of the NUMA nodes on which the init
            containers before them run, and are refused if these are too small. numapin then places
            the init containers where the others fit. Source: cpumanager, `GetTopologyHints`.
        binds_empty_requests: NUMA nodes are chosen, and may be refused, even for a container that
            asks for no memory. numapin skips it. Source: memorymanager, `Allocate`.
    """

    counts_sockets_by_average: bool
    refuses_overwritten_choice: bool
    distributes_over_sockets: bool
    splits_cores: bool
    aligns_to_all_sockets: bool
    counts_free_cpus_last: bool
    empties_shared_pool: bool
    shares_released_cpus_blindly: bool
    leaks_cpus_of_refused_pods: bool
    keeps_unused_pod_cpus: bool
    binds_to_init_containers: bool
    binds_empty_requests: bool


def _all(value: bool) -> KubeletQuirks:
    return KubeletQuirks(
        counts_sockets_by_average=value,
        refuses_overwritten_choice=value,
        distributes_over_sockets=value,
        splits_cores=value,
        aligns_to_all_sockets=value,
        counts_free_cpus_last=value,
        empties_shared_pool=value,
        shares_released_cpus_blindly=value,
        leaks_cpus_of_refused_pods=value,
        keeps_unused_pod_cpus=value,
        binds_to_init_containers=value,
        binds_empty_requests=value,
    )


NO_QUIRKS: Final = _all(value=False)
"""Answer as numapin's operator decides."""

KUBELET: Final = _all(value=True)
"""Answer as the kubelet does."""

_CAPACITIES: Final = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Capacities that a Go slice of ints grows through when elements are appended one by one."""


def overwritten_choice(
    chosen: Sequence[int], candidates: Sequence[int], *, search_stopped: bool
) -> tuple[int, ...]:
    """What the kubelet's record of a chosen combination holds once its search is over.

    The kubelet keeps a slice that the search goes on appending to. Where the slice has spare
    capacity, combinations with the same beginning share its memory, so that the end of the chosen
    one is overwritten by the last of them (by the very next, if the search stopped there because
    nothing can be more even). numapin repeats this as long as the answer has enough CPUs: a policy
    that moves from the kubelet to numapin must place pods alike.
    Source: Kubernetes v1.36, cpumanager, `iterateCombinations`.

    Args:
        chosen: a combination of the candidates, in their order.
        candidates: what there is to choose from.
        search_stopped: whether the search ended with the next combination.
    """
    size, total = len(chosen), len(candidates)
    unshared = max((capacity for capacity in _CAPACITIES if capacity < size), default=0) + 1
    if unshared >= size:
        return tuple(chosen)
    position = {candidate: number for number, candidate in enumerate(candidates)}
    numbers = tuple(position[each] for each in chosen)
    if search_stopped:
        following = _next_combination(numbers, total)
        left = following if following[:unshared] == numbers[:unshared] else numbers
    else:
        left = numbers[:unshared] + tuple(range(total - (size - unshared), total))
    return tuple(candidates[number] for number in left)


def _next_combination(chosen: tuple[int, ...], total: int) -> tuple[int, ...]:
    """The combination after this one in ascending order; itself if it is the last."""
    size = len(chosen)
    for i in reversed(range(size)):
        if chosen[i] < total - size + i:
            return chosen[:i] + tuple(range(chosen[i] + 1, chosen[i] + 1 + size - i))
    return chosen
