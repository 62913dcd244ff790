"""Gauges and counters that follow from an assignment alone."""

from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_daemon.telemetry.metric import OTHER
from numapin_enforcer.assignment.decode import decode_spec
from numapin_enforcer.telemetry.admissions import admissions
from numapin_enforcer.telemetry.allocation import allocation, largest_block
from numapin_enforcer.telemetry.kubelet_names import KUBELET_METRICS


def machine(*, cache: bool = True) -> Topology:
    """16 CPUs: two NUMA nodes of two caches of two cores of two threads."""
    return Topology(
        tuple(
            Cpu(cpu, cpu // 2 * 2, cpu // 8, cpu // 4 if cache else NO_CACHE, cpu // 8)
            for cpu in range(16)
        ),
        (NumaNode(0, 1 << 30), NumaNode(1, 1 << 30)),
    )


def container(name: str, cpus: str, mems: str = "", pod: str = "p1") -> dict[str, Any]:
    sets = {"cpus": cpus, "mems": mems, "exclusive": bool(cpus)}
    return {"podUID": pod, "namespace": "d", "pod": pod, "container": name, **sets}


def refusal(reason: str, container: str | None = None, pod: str = "r1") -> dict[str, Any]:
    named = {"podUID": pod, "namespace": "d", "pod": pod, "reason": reason, "message": "m"}
    return named | ({"container": container} if container else {})


def spec(
    *containers: dict[str, Any], refused: tuple[Any, ...] = (), **more: Any
) -> NodeAssignmentSpec:
    pools = {"reserved": "0-1", "shared": "0-1,14-15"}
    return decode_spec(
        {"pools": pools, "containers": list(containers), "refused": list(refused), **more}
    )


def gauges(spec: NodeAssignmentSpec) -> dict[str, Any]:
    return {one.name: series for one, series in allocation(spec, machine()).items()}


def counts(before: NodeAssignmentSpec | None, after: NodeAssignmentSpec) -> dict[str, float]:
    """What is counted, by the kubelet's older names."""
    found = admissions(before, after, machine())
    newer = [one for one in KUBELET_METRICS if one.name.endswith(("resources_total", "re_total"))]
    return {
        " ".join((metric.name.removeprefix("kubelet_"), *labels)): count
        for (metric, labels), count in found.items()
        if metric not in newer
    }


def test_the_gauges_of_an_assignment() -> None:
    found = gauges(spec(container("a", "2-5"), container("b", "8-9")))
    assert found["kubelet_cpu_manager_exclusive_cpu_allocation_count"] == {(): 6}
    assert found["kubelet_cpu_manager_exclusive_cpu_allocated"] == {(): 6}
    assert found["kubelet_cpu_manager_shared_pool_size_millicores"] == {(): 2000}
    assert found["kubelet_cpu_manager_allocation_per_numa"] == {("0",): 4, ("1",): 2}
    assert found["numapin_free_cpus"] == {("0",): 2, ("1",): 6}
    assert found["numapin_largest_free_block_cpus"] == {("0",): 2, ("1",): 4}


def test_refusals_are_counted_by_reasons_that_are_known() -> None:
    refused = (
        refusal("NotEnoughCPUs", "a"),
        refusal("NotEnoughCPUs", "b"),
        refusal("Invented\n", pod="r2"),
    )
    found = gauges(spec(refused=refused, refusedOmitted=3))["numapin_refused"]
    assert found == {("NotEnoughCPUs",): 2, (OTHER,): 4}


@pytest.mark.parametrize("fields", [{"pools": None}, {"mode": "None", "pools": None}], ids=str)
def test_nothing_is_given_out_without_pools(fields: dict[str, Any]) -> None:
    wire = {name: value for name, value in fields.items() if value is not None}
    assert allocation(decode_spec(wire), machine()) == {}


@pytest.mark.parametrize(
    ("free", "cache", "block"),
    [
        ("0-15", True, 4),
        ("0-15", False, 8),
        ("0,2,4,6", True, 0),
        ("0-1,4,6-7", True, 2),
        ("", True, 0),
    ],
)
def test_a_block_is_whole_cores_of_one_cache(free: str, cache: bool, block: int) -> None:
    assert largest_block(machine(cache=cache), CpuSet.parse(free)) == block


def test_an_aligned_container_is_counted_as_the_kubelet_would() -> None:
    assert counts(spec(), spec(container("a", "2-3", "0"))) == {
        "cpu_manager_pinning_requests_total": 1,
        "memory_manager_pinning_requests_total": 1,
        "topology_manager_admission_requests_total": 1,
        "container_aligned_compute_resources_count container physical_cpu": 1,
        "container_aligned_compute_resources_count container numa_node": 1,
        "container_aligned_compute_resources_count container uncore_cache": 1,
    }


@pytest.mark.parametrize(
    ("cpus", "kept"),
    [
        ("2-5", {"physical_cpu", "numa_node"}),
        ("6-9", {"physical_cpu"}),
        ("3,5", {"numa_node"}),
        ("3", {"numa_node", "uncore_cache"}),
    ],
)
def test_only_the_boundaries_that_are_kept_are_counted(cpus: str, kept: set[str]) -> None:
    found = counts(None, spec(container("a", cpus)))
    aligned = "container_aligned_compute_resources_count container "
    assert {name.removeprefix(aligned) for name in found if name.startswith(aligned)} == kept


def test_both_names_of_a_metric_have_the_same_value() -> None:
    found = admissions(None, spec(container("a", "2-3")), machine())
    names = {one.name for one, _ in found}
    assert "kubelet_container_aligned_compute_resources_total" in names
    assert "kubelet_container_aligned_compute_resources_count" in names


@pytest.mark.parametrize(
    ("refused", "expected"),
    [
        (
            refusal("NotEnoughCPUs", "a"),
            {"cpu_manager_pinning_requests_total": 1, "cpu_manager_pinning_errors_total": 1},
        ),
        (
            refusal("NotEnoughMemory", "a"),
            {"memory_manager_pinning_requests_total": 1, "memory_manager_pinning_errors_total": 1},
        ),
        (
            refusal("TopologyAffinityError", "a"),
            {"container_aligned_compute_resources_failure_count container numa_node": 1},
        ),
        (
            refusal("TopologyAffinityError"),
            {"container_aligned_compute_resources_failure_count pod numa_node": 1},
        ),
        (
            refusal("SMTAlignmentError", "a"),
            {
                "cpu_manager_pinning_requests_total": 1,
                "cpu_manager_pinning_errors_total": 1,
                "container_aligned_compute_resources_failure_count container physical_cpu": 1,
            },
        ),
    ],
    ids=lambda one: str(one.get("reason", "")),
)
def test_a_refusal_is_an_error_of_its_manager(
    refused: dict[str, Any], expected: dict[str, float]
) -> None:
    admission = {
        "topology_manager_admission_requests_total": 1,
        "topology_manager_admission_errors_total": 1,
    }
    assert counts(spec(), spec(refused=(refused,))) == expected | admission


def test_what_was_there_before_is_not_counted_again() -> None:
    known = (container("a", "2-3"), container("a", "4-5", pod="p2"))
    refused = (refusal("NotEnoughCPUs", "a"),)
    assert counts(spec(*known, refused=refused), spec(*known[:1], refused=refused)) == {}


def test_a_second_container_of_a_pod_is_no_second_admission() -> None:
    found = counts(spec(container("a", "2-3")), spec(container("a", "2-3"), container("b", "4-5")))
    assert found["cpu_manager_pinning_requests_total"] == 1
    assert "topology_manager_admission_requests_total" not in found
