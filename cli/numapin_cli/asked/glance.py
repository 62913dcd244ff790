"""All nodes of a cluster at a glance; nothing else of them is kept, as there may be thousands.

Does no I/O.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from numapin_api.cpuset import CpuSet
from numapin_operator.observe.node_status import json_object, json_objects


@dataclass(frozen=True, slots=True)
class Glance:
    """A node with a NodeAssignment.

    Attributes:
        free: how many CPUs are neither reserved nor exclusive.
        refused: the pods that it refuses, each as `namespace/name`.
    """

    name: str
    free: int
    refused: frozenset[str]

    @classmethod
    def of(cls, assignment: Mapping[str, Any]) -> "Glance":
        """Glance at a NodeAssignment in the form of v1alpha1; what is wrong in it is nothing."""
        spec = json_object(assignment, "spec")
        refused = (
            f"{one.get('namespace')}/{one.get('pod')}" for one in json_objects(spec.get("refused"))
        )
        name = str(json_object(assignment, "metadata").get("name"))
        return cls(name, _free_cpus(json_object(spec, "pools")), frozenset(refused))


def best_nodes(glances: Iterable[Glance], nodes: Collection[str], besides: str) -> list[str]:
    """The existing nodes with a NodeAssignment, those with most free CPUs first, without one."""
    free = {one.name: one.free for one in glances if one.name in nodes and one.name != besides}
    return sorted(free, key=lambda name: (-free[name], name))


def _free_cpus(pools: Mapping[str, Any]) -> int:
    try:
        shared, reserved = (
            CpuSet.parse(str(pools.get(pool) or "")) for pool in ("shared", "reserved")
        )
    except ValueError:
        return 0
    return len(shared - reserved)
