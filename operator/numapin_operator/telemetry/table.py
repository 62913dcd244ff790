"""The metrics of the operator; docs/metrics.md lists them. Does no I/O."""

from itertools import product
from typing import Final

from numapin_api.conditions.reasons import REFUSAL_REASONS
from numapin_daemon.telemetry.metric import SECONDS_BUCKETS, Kind, Metric
from numapin_daemon.telemetry.process_table import PROCESS_METRICS, WATCH_AGE

LEADS: Final = Metric(
    "numapin_leads",
    Kind.GAUGE,
    "1 while this operator leads, if only some of the shards, else 0.",
)
QUEUE_LENGTH: Final = Metric(
    "numapin_queue_length",
    Kind.GAUGE,
    "Nodes that wait to be planned; delayed ones wait because their last plan or write failed.",
    ("state",),
    begins_with=(("waiting",), ("delayed",)),
)
QUEUE_AGE: Final = Metric(
    "numapin_queue_age_seconds",
    Kind.GAUGE,
    "How long the node that has waited longest to be planned has waited.",
    unit="s",
)
PLAN_SECONDS: Final = Metric(
    "numapin_plan_seconds",
    Kind.HISTOGRAM,
    "How long it takes to decide what one node's assignment must say.",
    unit="s",
    begins_with=((),),
    buckets=(0.0001, 0.0005, *SECONDS_BUCKETS[:12]),
)
WRITES: Final = Metric(
    "numapin_assignment_writes_total",
    Kind.COUNTER,
    "Writes of NodeAssignments by result: written, stale (planned again at once), refused (someone "
    "must act) or failed (tried again later).",
    ("operation", "result"),
    begins_with=tuple(
        product(("create", "replace", "delete"), ("written", "stale", "refused", "failed"))
    ),
)
REFUSALS: Final = Metric(
    "numapin_refusals_total",
    Kind.COUNTER,
    "Containers and pods that were refused CPUs or memory, by reason.",
    ("reason",),
    begins_with=tuple((str(reason),) for reason in REFUSAL_REASONS),
)
WITHOUT_DEVICES: Final = Metric(
    "numapin_placed_without_devices_total",
    Kind.COUNTER,
    "Pods that were placed before it was known which devices they have, or where these are.",
    begins_with=((),),
)
EVICTIONS: Final = Metric(
    "numapin_evictions_total",
    Kind.COUNTER,
    "Evictions of refused pods by result: evicted, or failed (tried again later).",
    ("result",),
    begins_with=(("evicted",), ("failed",)),
)
EVICTIONS_WAITING: Final = Metric(
    "numapin_evictions_waiting", Kind.GAUGE, "Refused pods that wait to be evicted."
)
NODES: Final = Metric(
    "numapin_nodes",
    Kind.GAUGE,
    "Nodes that a policy governs, by how far it has come there: in_force, under_way, stalled or "
    "not_served. Known to the operator that leads.",
    ("state",),
    begins_with=(("in_force",), ("under_way",), ("stalled",), ("not_served",)),
)
POLICIES: Final = Metric(
    "numapin_policies",
    Kind.GAUGE,
    "CpuPolicies; each operator, leader or not, counts those it sees.",
)
REFUSED_PODS: Final = Metric(
    "numapin_refused_pods", Kind.GAUGE, "Pods that are refused CPUs or memory on all nodes now."
)
HELD_PODS: Final = Metric(
    "numapin_held_pods",
    Kind.GAUGE,
    "Pods that wait with numapin's scheduling gate; 0 as long as no policy holds any.",
)
OUTDATED: Final = Metric(
    "numapin_outdated_containers",
    Kind.GAUGE,
    "Running containers that keep CPUs or memory which the newest policy would not give them.",
)
_NUMA_LABELS: Final = ("node_name", "numa_node", "resource", "unit")
_MOST_NUMA_SERIES: Final = 100_000
NUMA_ALLOCATABLE: Final = Metric(
    "numapin_numa_allocatable",
    Kind.GAUGE,
    "What a NUMA node has for containers: CPUs that are not reserved, and, where the policy binds "
    "memory, memory and huge pages that are not. Only with --numa-metrics.",
    _NUMA_LABELS,
    most_series=_MOST_NUMA_SERIES,
)
NUMA_AVAILABLE: Final = Metric(
    "numapin_numa_available",
    Kind.GAUGE,
    "What of that is left for new containers: promised to none, and not known to be used by "
    "others. Only with --numa-metrics.",
    _NUMA_LABELS,
    most_series=_MOST_NUMA_SERIES,
)
BOUND_TO_WRITTEN: Final = Metric(
    "numapin_pod_bound_to_written_seconds",
    Kind.HISTOGRAM,
    "Time from when the operator saw a pod bound until its CPUs were in the NodeAssignment.",
    unit="s",
    begins_with=((),),
    buckets=SECONDS_BUCKETS,
)
BOUND_TO_IN_FORCE: Final = Metric(
    "numapin_pod_bound_to_in_force_seconds",
    Kind.HISTOGRAM,
    "Time from when the operator saw a pod bound until it saw every exclusive container of the pod "
    "reported exclusive; the pull of its images is a part of it.",
    unit="s",
    begins_with=((),),
    buckets=SECONDS_BUCKETS,
)

METRICS: Final = (
    LEADS,
    WATCH_AGE,
    QUEUE_LENGTH,
    QUEUE_AGE,
    PLAN_SECONDS,
    WRITES,
    REFUSALS,
    WITHOUT_DEVICES,
    EVICTIONS,
    EVICTIONS_WAITING,
    NODES,
    POLICIES,
    REFUSED_PODS,
    HELD_PODS,
    OUTDATED,
    NUMA_ALLOCATABLE,
    NUMA_AVAILABLE,
    BOUND_TO_WRITTEN,
    BOUND_TO_IN_FORCE,
    *PROCESS_METRICS,
)
