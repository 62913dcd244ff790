"""Whether a container that is being made may get an assignment. Does no I/O."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from numapin_api.meta.matching import selects
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver, InvalidIdError, Qos
from numapin_enforcer.runtime.nri.values import NriContainer

SHARES_PER_CPU: Final = 1024
"""The weight of a request for one CPU. Source: kubelet, pkg/kubelet/cm, `MilliCPUToShares`."""

LEAST_SHARES: Final = 2
"""The weight of a container that requests no CPU itself, as in a pod that does as a whole."""


class _Requirement(NamedTuple):
    """One expression of a selector."""

    key: str
    operator: str
    values: tuple[str, ...]


class _Selector(NamedTuple):
    """A selector of the spec's JSON."""

    match_labels: Mapping[str, str]
    match_expressions: tuple[_Requirement, ...]


def is_decided(spec: NodeAssignmentSpec, pod_uid: str) -> bool:
    """Whether the operator has said what a pod gets, refused it, or gives it nothing.

    A pod may have the CPUs of a claim before its other containers are placed.
    """
    return (
        any(one.pod_uid == pod_uid and not one.claimed for one in spec.containers)
        or any(one.get("podUID") == pod_uid for one in spec.refused)
        or pod_uid in spec.unassigned
    )


def is_waited_for(gate: Mapping[str, Any], container: NriContainer, naming: CgroupNaming) -> bool:
    """Whether the policy may give a container CPUs or NUMA nodes, for all that a node knows.

    `gate` is the JSON object of the spec.
    """
    return bool(
        (gate.get("memory") or _asks_for_whole_cpus(container))
        and selects(_selector(gate.get("podSelector") or {}), container.labels)
        and any(_is_of(Qos(one), container, naming) for one in gate["qosClasses"])
    )


def _selector(found: Mapping[str, Any]) -> _Selector:
    demands = (
        _Requirement(one["key"], one["operator"], tuple(one.get("values") or ()))
        for one in found.get("matchExpressions") or ()
    )
    return _Selector(found.get("matchLabels") or {}, tuple(demands))


def _asks_for_whole_cpus(container: NriContainer) -> bool:
    shares = container.cpu_shares
    return shares <= LEAST_SHARES or shares % SHARES_PER_CPU == 0


def _is_of(qos: Qos, container: NriContainer, naming: CgroupNaming) -> bool:
    """Whether a container's pod is of a class, by the cgroup that the kubelet made for it.

    With the driver systemd the kubelet names the slice alone.
    """
    try:
        path = naming.pod_path(qos, container.pod_uid)
    except InvalidIdError:
        return False
    parent = container.cgroup_parent.strip("/")
    if naming.driver is Driver.SYSTEMD:
        return parent.rpartition("/")[2] == path.rpartition("/")[2]
    return parent == path
