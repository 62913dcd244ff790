"""What the object of a node says, and that no reader stumbles over its zones."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.quantity import whole
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_enforcer.hardware.discovery import discover
from numapin_operator.noderesourcetopology.content import MOST_ZONES, content
from numapin_operator.placement import (
    PodView,
    plan_with,
    present_node,
    resolve,
)
from support.values.placement import GIB, NO_UIDS, machine, pod

GOLDEN = Path(__file__).parent / "golden"
ALIGNED: dict[str, Any] = {
    "reserved": {"count": 2},
    "topology": {"policy": "SingleNUMANode", "scope": "Pod"},
    "memory": {"policy": "Static"},
}


def said(hardware: Topology, *pods: PodView, **fields: Any) -> dict[str, Any]:
    """What is published of a machine on which these pods have been placed."""
    policy = resolve(hardware, CpuPolicySpec.model_validate(ALIGNED | fields))
    spec = plan_with(policy, None, pods, NO_UIDS).spec
    return content(present_node(policy, spec, pods, NO_UIDS), pods)


def captured(machines: Path, name: str) -> Topology:
    return discover(machines / name / "sys", machines / name / "proc")


def attributes(made: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in made["attributes"]}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("skylake-2s2n-smt2-pci", id="2-nodes"),
        pytest.param("opteron6276-4s8n-modules", id="8-nodes"),
        pytest.param("magnycours-4s8n-sparse-nodes", id="sparse-ids"),
        pytest.param("power9-smt4-gpu-nodes", id="ids-of-64-and-more"),
    ],
)
def test_objects_of_captured_machines(captured_machines: Path, name: str) -> None:
    pods = [replace(pod(f"p{at}", "4", memory="2Gi"), counted=at < 2) for at in range(3)]
    expected = json.loads((GOLDEN / f"{name}.json").read_text())
    assert said(captured(captured_machines, name), *pods) == expected


def names(made: dict[str, Any]) -> list[str]:
    return [zone["name"] for zone in made["zones"]]


def ids(made: dict[str, Any]) -> list[str]:
    return [zone["attributes"][0]["value"] for zone in made["zones"]]


def test_zones_are_numbered_without_gaps(captured_machines: Path, captured_machine: str) -> None:
    """Readers index arrays of as many places as there are zones by the number in the name."""
    made = said(captured(captured_machines, captured_machine))
    assert names(made) == [f"node-{at}" for at in range(len(made["zones"]))]
    for zone in made["zones"]:
        assert zone["type"] == "Node"
        assert [cost["name"] for cost in zone["costs"]] == names(made)
        for one in zone["resources"]:
            sizes = [whole(one[key]) for key in ("available", "allocatable", "capacity")]
            assert sizes == sorted(sizes)


def wide(count: int, first: int = 0) -> Topology:
    """A machine with one CPU in each of very many NUMA nodes, behind some that have only memory."""
    return Topology(
        cpus=tuple(Cpu(at, at, at, -1, first + at) for at in range(count)),
        numa_nodes=tuple(NumaNode(at, GIB) for at in range(first + count)),
    )


@pytest.mark.parametrize(("count", "first"), [(65, 0), (100, 30), (200, 0)])
def test_at_most_64_zones_are_published_and_first_those_with_cpus(count: int, first: int) -> None:
    made = said(wide(count, first))
    assert len(made["zones"]) == MOST_ZONES == 64
    assert ids(made) == [str(first + at) for at in range(64)]
    assert attributes(made)["topologyManagerMaxNUMANodes"] == "64"


def test_memory_of_devices_is_no_zone() -> None:
    topology = replace(
        machine(8, numa_nodes=2),
        numa_nodes=(NumaNode(0, GIB), NumaNode(1, GIB), NumaNode(9, GIB, on_device=True)),
    )
    assert ids(said(topology)) == ["0", "1"]


def test_distances_that_nobody_reports_are_those_of_the_kernel() -> None:
    made = said(machine(8, numa_nodes=2))
    assert [cost["value"] for cost in made["zones"][1]["costs"]] == [20, 10]


@pytest.mark.parametrize(
    ("policy", "scope", "expected"),
    [
        ("None", "Container", ("none", "container")),
        ("BestEffort", "Container", ("best-effort", "container")),
        ("Restricted", "Pod", ("restricted", "pod")),
        ("SingleNUMANode", "Pod", ("single-numa-node", "pod")),
    ],
)
def test_attributes_are_named_as_by_the_kubelet(
    policy: str, scope: str, expected: tuple[str, str]
) -> None:
    made = attributes(said(machine(8, numa_nodes=2), topology={"policy": policy, "scope": scope}))
    assert (made["topologyManagerPolicy"], made["topologyManagerScope"]) == expected
    assert made["nodeTopologyPodsFingerprintMethod"] == "with-exclusive-resources"


def test_only_counted_pods_are_in_the_fingerprint() -> None:
    nobody = attributes(said(machine(8, numa_nodes=2), pod("a", "2")))
    one = attributes(said(machine(8, numa_nodes=2), replace(pod("a", "2"), counted=True)))
    key = "nodeTopologyPodsFingerprint"
    assert nobody[key] == "pfp0v001ef46db3751d8e999"
    assert one[key] != nobody[key]
