"""Groups of CPUs that overlap although one should contain the other.

Virtual machines with wrong cells and fake NUMA nodes have such: threads of one core in two NUMA
nodes, or NUMA nodes with parts of two sockets.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_api.text import join_texts
from numapin_api.topology import Topology

_LONGEST_LIST: Final = 200
"""Characters of a list of groups, so that a warning is whole in a status."""

_Groups = Mapping[int, CpuSet]


def crossings(topology: Topology) -> tuple[str, ...]:
    """A warning for each kind of group that crosses another kind; none on a sound machine."""
    return tuple(_crossings(topology))


def _crossings(topology: Topology) -> Iterator[str]:
    numa_nodes, sockets = topology.numa_cpus, topology.socket_cpus
    cores = {core: cpus for core, cpus in topology.core_cpus.items() if len(cpus) > 1}
    if found := [str(cpus) for cpus in cores.values() if _in_several(cpus, numa_nodes)]:
        yield (
            f"the threads of cores {_listed(found)} are in several NUMA nodes: with fullPCPUsOnly"
            " such a core is given whole or not at all, and never to a container that must be on"
            " one NUMA node"
        )
    if found := [str(cpus) for cpus in cores.values() if _in_several(cpus, sockets)]:
        yield f"the threads of cores {_listed(found)} are in several sockets"
    if found := _overlapping(numa_nodes, sockets):
        yield (
            f"NUMA nodes {_listed(found)} have CPUs of several sockets, and these have CPUs of"
            " other NUMA nodes: CPUs of one NUMA node can be in several sockets"
        )
    caches = topology.uncore_cache_cpus
    for others, name in ((numa_nodes, "NUMA nodes"), (sockets, "sockets")):
        if found := _overlapping(caches, others):
            yield f"L3 caches {_listed(found)} are shared by parts of several {name}"


def _in_several(cpus: CpuSet, groups: _Groups) -> bool:
    return not any(cpus <= group for group in groups.values())


def _overlapping(groups: _Groups, others: _Groups) -> list[str]:
    """The groups that are in no other group, and do not consist of whole others."""
    return [
        str(id_)
        for id_, cpus in groups.items()
        if any(not (cpus.isdisjoint(one) or cpus <= one or one <= cpus) for one in others.values())
    ]


def _listed(texts: list[str]) -> str:
    return join_texts(texts, " ", _LONGEST_LIST)
