"""Options of a policy that a machine serves in part only, because its groups cross each other."""

from typing import Final

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.cpuset import CpuSet
from numapin_api.text import join_texts
from numapin_api.topology import Topology
from numapin_operator.placement.cpumanager.cpu_groups import CpuGroups, cpu_groups_of

_LONGEST_LIST: Final = 160
"""Characters of a list of cores."""


def crossing_groups(policy: CpuPolicySpec, topology: Topology | None) -> str:
    """What of the machine crosses, and what an option of the policy does then; empty if nothing."""
    if policy.mode == "None" or topology is None:
        return ""
    options = policy.options
    if not options.full_pcpus_only and not options.align_by_socket:
        return ""
    groups = cpu_groups_of(topology)
    if options.full_pcpus_only and groups.cores_cross:
        return (
            f"threads of cores {_cores(groups)} are in several NUMA nodes; options.fullPCPUsOnly"
            " gives such a core whole, and only to containers that may be on several NUMA nodes."
            " Correct the machine's NUMA cells"
        )
    if options.align_by_socket and groups.sockets_cross:
        return (
            "NUMA nodes have parts of several sockets; CPUs that options.alignBySocket keeps in one"
            " socket can be on several NUMA nodes. Correct the machine's NUMA cells"
        )
    return ""


def _cores(groups: CpuGroups) -> str:
    crossing = [
        str(CpuSet.from_mask(core))
        for core in groups.cores.values()
        if core & ~groups.in_one_numa_node
    ]
    return join_texts(crossing, ", ", _LONGEST_LIST)
