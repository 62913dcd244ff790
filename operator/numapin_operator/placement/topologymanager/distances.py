"""How far the NUMA nodes of a machine are from each other, as its firmware says."""

from typing import Final
from weakref import WeakKeyDictionary

from numapin_api.topology import Topology, default_distances
from numapin_operator.placement.topologymanager.subset_search import Distances

_DISTANCES: Final[WeakKeyDictionary[Topology, Distances]] = WeakKeyDictionary()
"""It keeps no topology: the nodes of a cluster do, as long as they report it."""


def distances_of(topology: Topology) -> Distances:
    """The distance of each NUMA node to each; all others are equally far if firmware gives none."""
    found = _DISTANCES.get(topology)
    if found is None:
        found = _DISTANCES[topology] = _read(topology)
    return found


def _read(topology: Topology) -> Distances:
    ids = [numa_node.id for numa_node in topology.numa_nodes]
    assumed = default_distances(len(ids))
    return {
        numa_node.id: dict(zip(ids, numa_node.distances or assumed[row], strict=True))
        for row, numa_node in enumerate(topology.numa_nodes)
    }
