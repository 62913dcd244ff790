"""The kubelet's metrics of exclusive CPUs and local memory, which the enforcer has in its place.

Names, types, labels and meanings are those of Kubernetes 1.36. Three of them are about to get names
that follow Prometheus' conventions; the enforcer has both names. Source: pkg/kubelet/metrics;
kubernetes/kubernetes#138417. Does no I/O.
"""

from typing import Final

from numapin_daemon.telemetry.metric import Kind, Labels, Metric


def _counter(
    name: str, meaning: str, labels: tuple[str, ...] = (), begins_with: tuple[Labels, ...] = ((),)
) -> Metric:
    return Metric(f"kubelet_{name}", Kind.COUNTER, meaning, labels, begins_with=begins_with)


def _gauge(name: str, meaning: str, labels: tuple[str, ...] = (), unit: str = "") -> Metric:
    return Metric(f"kubelet_{name}", Kind.GAUGE, meaning, labels, unit)


def _aligned(name: str, meaning: str, begins_with: tuple[Labels, ...]) -> Metric:
    return _counter(name, meaning, ("scope", "boundary"), begins_with)


CPU_REQUESTS: Final = _counter(
    "cpu_manager_pinning_requests_total",
    "The number of cpu core allocations which required pinning.",
)
CPU_ERRORS: Final = _counter(
    "cpu_manager_pinning_errors_total",
    "The number of cpu core allocations which required pinning failed.",
)
SHARED_MILLICORES: Final = _gauge(
    "cpu_manager_shared_pool_size_millicores",
    "The size of the shared CPU pool for non-guaranteed QoS pods, in millicores.",
)
EXCLUSIVE_CPUS: Final = tuple(
    _gauge(
        name, "The total number of CPUs exclusively allocated to containers running on this node"
    )
    for name in (
        "cpu_manager_exclusive_cpu_allocation_count",
        "cpu_manager_exclusive_cpu_allocated",
    )
)
EXCLUSIVE_PER_NUMA: Final = _gauge(
    "cpu_manager_allocation_per_numa", "Number of CPUs allocated per NUMA node", ("numa_node",)
)

_ALIGNED: Final = (
    ("container", "numa_node"),
    ("container", "physical_cpu"),
    ("container", "uncore_cache"),
    ("pod", "numa_node"),
)
_MISALIGNED: Final = (
    ("container", "numa_node"),
    ("container", "physical_cpu"),
    ("pod", "numa_node"),
)

ALIGNED: Final = tuple(
    _aligned(
        f"container_aligned_compute_resources_{suffix}",
        "Cumulative number of aligned compute resources allocated to containers by alignment type.",
        _ALIGNED,
    )
    for suffix in ("count", "total")
)
MISALIGNED: Final = tuple(
    _aligned(
        f"container_aligned_compute_resources_failure_{suffix}",
        "Cumulative number of failures to allocate aligned compute resources to containers by "
        "alignment type.",
        _MISALIGNED,
    )
    for suffix in ("count", "total")
)
MEMORY_REQUESTS: Final = _counter(
    "memory_manager_pinning_requests_total",
    "The number of memory pages allocations which required pinning.",
)
MEMORY_ERRORS: Final = _counter(
    "memory_manager_pinning_errors_total",
    "The number of memory pages allocations which required pinning that failed.",
)
ADMISSION_REQUESTS: Final = _counter(
    "topology_manager_admission_requests_total",
    "The number of admission requests where resources have to be aligned.",
)
ADMISSION_ERRORS: Final = _counter(
    "topology_manager_admission_errors_total",
    "The number of admission request failures where resources could not be aligned.",
)

KUBELET_METRICS: Final = (
    CPU_REQUESTS,
    CPU_ERRORS,
    SHARED_MILLICORES,
    *EXCLUSIVE_CPUS,
    EXCLUSIVE_PER_NUMA,
    *ALIGNED,
    *MISALIGNED,
    MEMORY_REQUESTS,
    MEMORY_ERRORS,
    ADMISSION_REQUESTS,
    ADMISSION_ERRORS,
)
