"""The largest NodeAssignment that operator and enforcer write fits into etcd; and no larger one."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.hardware.limits import MAX_BYTES, MAX_WARNINGS, TOPOLOGY_BYTES, WARNING_LENGTH
from numapin_api.names import API_VERSION, NODE_ASSIGNMENT_KIND
from numapin_api.nodeassignment import (
    CONTAINERS_BYTES,
    MAX_ENTRIES,
    MAX_UNBOUND,
    SPEC_BYTES,
)
from numapin_api.schema.plain_assignment import (
    ContainerAssignment,
    MemoryBlock,
    NodeAssignmentSpec,
    Pools,
    Refusal,
)
from numapin_lab.controlplane.kubectl import Kubectl
from numapin_lab.errors import LabError
from numapin_operator.placement.assignment.size_limit import entry_bytes, refusal_bytes

ETCD_BYTES = 1.5 * (1 << 20)
CONDITION = {
    "status": "True",
    "observedGeneration": 1,
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "reason": "R" * 1024,
    "message": "m" * 4096,
}


def long_entry(index: int) -> ContainerAssignment:
    """An entry with the longest names that Kubernetes allows."""
    return ContainerAssignment(
        pod_uid=f"{index:u>64}",
        namespace="n" * 63,
        pod="p" * 253,
        container=f"{index:c>63}",
        cpus=CpuSet([index % 8192]),
        mems=MemSet([index % 8]),
        exclusive=True,
        memory=(MemoryBlock(numa_nodes=(index % 8,), resource="memory", bytes=1 << 40),),
    )


def short_entry(index: int) -> ContainerAssignment:
    return replace(
        long_entry(index),
        pod_uid=f"{index:036}",
        namespace="n",
        pod="p",
        container=f"c{index}",
    )


def full_spec(entry: Any) -> NodeAssignmentSpec:
    """As many entries and refusals as the operator writes."""
    containers, size = [], 0
    for index in range(MAX_ENTRIES):
        made = entry(index)
        size += entry_bytes(made)
        if size > CONTAINERS_BYTES:
            size -= entry_bytes(made)
            break
        containers.append(made)
    refusal = Refusal(
        pod_uid="u" * 64, namespace="n" * 63, pod="p" * 253, reason="R" * 64, message="<" * 2048
    )
    refused = (refusal,) * ((SPEC_BYTES - size) // refusal_bytes(refusal))
    return NodeAssignmentSpec(
        pools=Pools(reserved=CpuSet([0]), shared=CpuSet([0])),
        containers=tuple(containers),
        refused=refused,
        refused_omitted=10**6,
    )


def full_status(spec: NodeAssignmentSpec) -> dict[str, Any]:
    """What an enforcer reports of that spec at most."""
    topology: dict[str, Any] = {
        "numaNodes": [{"id": 0, "cpus": "0-8191", "memoryBytes": 1}],
        "cores": [f"{core},{core + 4096}" for core in range(4096)],
        "warnings": ["w" * WARNING_LENGTH] * MAX_WARNINGS,
    }
    left = TOPOLOGY_BYTES - len(json.dumps(topology, separators=(",", ":"))) - 100
    topology["pci"] = [{"devices": ["d" * 60] * min(1024, left // 63)}]
    return {
        "topology": topology,
        "containers": [
            one.to_wire() | {"memory": None, "namespace": None, "pod": None}
            for one in spec.containers
        ],
        "running": [f"{index:u>64}" for index in range(2048)],
        "unboundMemory": [
            {"podUID": f"{index:u>64}", "bytes": {str(node): MAX_BYTES for node in range(8)}}
            for index in range(MAX_UNBOUND)
        ],
        "conditions": [CONDITION | {"type": kind} for kind in ("Ready", "Reconciling", "Stalled")],
    }


@pytest.mark.parametrize("entry", [long_entry, short_entry])
def test_the_largest_assignment_fits_into_etcd(
    installed: Kubectl, tmp_path: Path, entry: Any
) -> None:
    spec = full_spec(entry)
    name = f"full-{entry.__name__.split('_')[0]}"
    body: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": NODE_ASSIGNMENT_KIND,
        "metadata": {"name": name},
        "spec": spec.to_wire(),
    }
    installed("create", "-f", "-", text=json.dumps(body))
    try:
        patch = tmp_path / "status.json"
        patch.write_text(json.dumps({"status": full_status(spec)}))
        with_status = ("patch", "nodeasg", name, "--subresource=status", "--type=merge")
        installed(*with_status, f"--patch-file={patch}")
        stored = installed.get("nodeassignment", name)
        assert len(stored["spec"]["containers"]) > 1000
        assert len(stored["status"]["containers"]) == len(spec.containers)
        assert 0.6 * ETCD_BYTES < len(json.dumps(stored, separators=(",", ":"))) < ETCD_BYTES
    finally:
        installed("delete", "nodeassignment", name)


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        ({"numaNodes": [{"id": 1024, "memoryBytes": 1}]}, "topology.numaNodes[0].id"),
        (
            {"numaNodes": [{"id": 0, "memoryBytes": 1, "distances": [1] * 1025}]},
            "topology.numaNodes[0].distances",
        ),
        (
            {"numaNodes": [{"id": 0, "memoryBytes": 1, "hugepages": {"1Gi": -1}}]},
            "topology.numaNodes[0].hugepages.1Gi",
        ),
        ({"sockets": [{"id": 0, "cpus": "0-65535"}]}, "topology.sockets[0].cpus"),
        ({"sockets": [{"id": -1, "cpus": "0"}]}, "topology.sockets[0].id"),
        ({"uncoreCaches": [{"id": 1 << 31, "cpus": "0"}]}, "topology.uncoreCaches[0].id"),
        ({"cores": ["0"] * 4097}, "topology.cores"),
        ({"warnings": ["w" * 513]}, "topology.warnings[0]"),
        ({"pci": [{"devices": ["d" * 65]}]}, "topology.pci[0].devices[0]"),
        ({"names": ["net/eth0=0000:00:03.0"] * 257}, "topology.names"),
        ({"names": ["net/eth0"]}, "topology.names[0]"),
        ({"names": ["net/\x1b[2J=0000:00:03.0"]}, "topology.names[0]"),
    ],
    ids=lambda value: value.removeprefix("topology.") if isinstance(value, str) else "",
)
def test_impossible_hardware_is_refused(
    installed: Kubectl, topology: dict[str, Any], message: str
) -> None:
    body = {"apiVersion": API_VERSION, "kind": NODE_ASSIGNMENT_KIND, "metadata": {"name": "bounds"}}
    installed("apply", "--server-side", "-f", "-", text=json.dumps(body | {"spec": {}}))
    patch = json.dumps({"status": {"topology": topology}})
    with pytest.raises(LabError) as refused:
        installed("patch", "nodeasg", "bounds", "--subresource=status", "--type=merge", "-p", patch)
    assert message in str(refused.value)
