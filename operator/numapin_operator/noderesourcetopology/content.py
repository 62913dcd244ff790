"""What the NodeResourceTopology of a node says.

Readers index arrays by the number in a zone's name: the plug-in NodeResourceTopologyMatch has 64
places, and as many as there are zones. So zones are numbered from 0 without gaps, and each names
its NUMA node in an attribute.
Source: sigs.k8s.io/scheduler-plugins v0.34.7, pkg/noderesourcetopology, `createNUMANodeList`,
`scoreForEachNUMANode` and `subtractFromNUMAs`.

Does no I/O.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from numapin_api import names
from numapin_api.quantity import as_quantity, whole
from numapin_api.topology import NumaNode, Topology, default_distances
from numapin_operator.noderesourcetopology.fingerprint import (
    ATTRIBUTE,
    METHOD,
    METHOD_ATTRIBUTE,
    fingerprint,
)
from numapin_operator.placement import CPU, Amount, Node, NumaAmounts, PodView, numa_amounts

Json = dict[str, Any]

MOST_ZONES: Final = 64
"""What readers take. Source: the same, `maxNUMAId`."""

_LEAST_LIMIT: Final = 8
"""The kubelet's default of max-allowable-numa-nodes. Readers divide by it what a score is worth."""

_POLICIES: Final = {
    "None": "none",
    "BestEffort": "best-effort",
    "Restricted": "restricted",
    "SingleNUMANode": "single-numa-node",
}


def content(machine: Node, pods: Iterable[PodView]) -> Json:
    """The fields `zones` and `attributes` of the object.

    Args:
        machine: the node with what its pods have.
        pods: those that are bound to it.
    """
    aligned, amounts = machine.policy.spec.topology, numa_amounts(machine)
    zones = _zones(machine.policy.topology, amounts)
    counted = ((pod.namespace, pod.name) for pod in pods if pod.counted)
    attributes = {
        "topologyManagerPolicy": _POLICIES[aligned.policy],
        "topologyManagerScope": aligned.scope.lower(),
        "topologyManagerMaxNUMANodes": str(max(_LEAST_LIMIT, len(zones))),
        ATTRIBUTE: fingerprint(counted),
        METHOD_ATTRIBUTE: METHOD,
    }
    return {"attributes": _attributes(attributes), "zones": zones}


def left(body: Json) -> tuple[int, ...]:
    """What each zone of an object has left of each resource, in the object's order."""
    resources = (one for zone in body.get("zones") or () for one in zone.get("resources") or ())
    return tuple(whole(one.get("available", 0)) for one in resources)


def _zones(topology: Topology, amounts: Mapping[int, NumaAmounts]) -> list[Json]:
    shown = _shown(topology, amounts)
    order = [numa_node.id for numa_node in topology.numa_nodes]
    defaults = default_distances(len(order))
    zones = []
    for zone, numa_node in enumerate(shown):
        row = numa_node.distances or defaults[order.index(numa_node.id)]
        costs = [
            {"name": _name(other), "value": row[order.index(one.id)]}
            for other, one in enumerate(shown)
        ]
        resources = [_resource(*pair) for pair in amounts[numa_node.id].items()]
        attributes = _attributes({names.NUMA_NODE_ATTRIBUTE: str(numa_node.id)})
        zones.append(
            {
                "name": _name(zone),
                "type": "Node",
                "costs": costs,
                "attributes": attributes,
                "resources": resources,
            }
        )
    return zones


def _shown(topology: Topology, amounts: Mapping[int, NumaAmounts]) -> list[NumaNode]:
    """The NUMA nodes that have anything; of too many those without CPUs are left out first."""

    def lacks_cpus(numa_node: NumaNode) -> bool:
        return not amounts[numa_node.id][CPU].capacity

    useful = [one for one in topology.numa_nodes if any(map(_is_there, amounts[one.id].values()))]
    chosen = sorted(useful, key=lacks_cpus)[:MOST_ZONES]
    return sorted(chosen, key=lambda one: one.id)


def _is_there(amount: Amount) -> bool:
    return amount.capacity > 0


def _resource(name: str, amount: Amount) -> Json:
    sizes = amount._asdict().items()
    return {"name": name} | {
        key: str(size) if name == CPU else as_quantity(size) for key, size in sizes
    }


def _attributes(values: Mapping[str, str]) -> list[Json]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _name(zone: int) -> str:
    return f"node-{zone}"
