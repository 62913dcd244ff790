"""The metrics of the enforcer; docs/metrics.md lists them. Does no I/O."""

from typing import Final

from numapin_api.conditions.reasons import REFUSAL_REASONS, Reason
from numapin_daemon.telemetry.metric import SECONDS_BUCKETS, Kind, Metric
from numapin_daemon.telemetry.process_table import PROCESS_METRICS, WATCH_AGE
from numapin_enforcer.plan.drift import Cause
from numapin_enforcer.start_gate.births import PINNED, SHARED
from numapin_enforcer.telemetry.kubelet_names import KUBELET_METRICS

MISPINNED_REASONS: Final = (
    Reason.APPLYING,
    Reason.CPUS_OFFLINE,
    Reason.CPUS_SHARED,
    Reason.CPUS_WITHHELD,
    Reason.FOREIGN_TASKS,
    Reason.INHERITED_AFFINITY,
    Reason.MEMORY_WITHHELD,
    Reason.PROCESSES_ELSEWHERE,
)

MISPINNED: Final = Metric(
    "numapin_mispinned_containers",
    Kind.GAUGE,
    "Containers that do not have what their assignment says, by reason. ForeignTasks: other tasks "
    "used the CPUs of an exclusive container since the last sample.",
    ("reason",),
    begins_with=tuple((str(reason),) for reason in MISPINNED_REASONS),
)
OVERLAP: Final = Metric(
    "numapin_overlap_seconds_total",
    Kind.COUNTER,
    "CPU time that other tasks used on the CPUs of exclusive containers, kernel threads included.",
    unit="s",
    begins_with=((),),
)
RUN_DELAY: Final = Metric(
    "numapin_run_delay_seconds_total",
    Kind.COUNTER,
    "Time for which runnable threads of exclusive containers waited for a CPU.",
    unit="s",
    begins_with=((),),
)
PRESSURE: Final = Metric(
    "numapin_pressure_stall_seconds_total",
    Kind.COUNTER,
    "Time for which some or all (full) tasks of an exclusive container waited for a resource, "
    "summed over the containers; on cgroup v2.",
    ("resource", "kind"),
    unit="s",
)
REMOTE_MEMORY: Final = Metric(
    "numapin_remote_memory_bytes",
    Kind.GAUGE,
    "Memory of containers that are bound to NUMA nodes, on other NUMA nodes than theirs.",
    unit="By",
)
PROMISED_KINDS: Final = ("promised", "promised_unused", "available", "burstable", "best_effort")
PROMISED_MEMORY: Final = Metric(
    "numapin_promised_memory_bytes",
    Kind.GAUGE,
    "Memory of NUMA nodes to which containers are bound: promised to these, what of that they have "
    "not used yet, available (free, or could be freed), and what Burstable and BestEffort pods "
    "have there. On machines with several NUMA nodes.",
    ("numa_node", "kind"),
    unit="By",
    most_series=len(PROMISED_KINDS) * 1024,
)
DRIFTS: Final = Metric(
    "numapin_drifts_total",
    Kind.COUNTER,
    "Changes of cpusets by other programs that were reverted, by what they did; counted over "
    "restarts.",
    ("cause",),
    begins_with=tuple((str(cause),) for cause in Cause),
)
WRITES: Final = Metric(
    "numapin_cgroup_writes_total",
    Kind.COUNTER,
    "Writes to cpusets in passes, by what the kernel said.",
    ("result",),
    begins_with=(("made",), ("refused",)),
)
PASS_SECONDS: Final = Metric(
    "numapin_pass_seconds",
    Kind.HISTOGRAM,
    "How long passes over the cgroups take.",
    unit="s",
    begins_with=((),),
    buckets=SECONDS_BUCKETS[:12],
)
PASS_AGE: Final = Metric(
    "numapin_pass_age_seconds",
    Kind.GAUGE,
    "Time since the last pass over the cgroups that could do its work.",
    unit="s",
)
IN_FORCE_SECONDS: Final = Metric(
    "numapin_container_in_force_seconds",
    Kind.HISTOGRAM,
    "Time from the pass that first saw an exclusive container's cgroup and assignment until the "
    "kernel had all of it and it was reported exclusive.",
    unit="s",
    begins_with=((),),
    buckets=SECONDS_BUCKETS,
)
STARTS: Final = Metric(
    "numapin_container_starts_total",
    Kind.COUNTER,
    "Containers of the start gate that have started. Pinned: with their CPUs and NUMA nodes, read "
    "from the kernel before their first process ran; Shared: without.",
    ("began",),
    begins_with=((PINNED,), (SHARED,)),
)
REFUSED: Final = Metric(
    "numapin_refused",
    Kind.GAUGE,
    "Containers and pods of this node that were refused CPUs or memory, by reason.",
    ("reason",),
    begins_with=tuple((str(reason),) for reason in REFUSAL_REASONS),
)
FREE_CPUS: Final = Metric(
    "numapin_free_cpus",
    Kind.GAUGE,
    "CPUs that are neither reserved nor exclusive, by NUMA node.",
    ("numa_node",),
    most_series=1024,
)
LARGEST_BLOCK: Final = Metric(
    "numapin_largest_free_block_cpus",
    Kind.GAUGE,
    "The most free CPUs of a NUMA node that are whole cores of one uncore cache.",
    ("numa_node",),
    most_series=1024,
)
ENFORCES: Final = Metric(
    "numapin_enforces",
    Kind.GAUGE,
    "1 while an assignment is enforced on this node, else 0.",
)

_CONTAINER: Final = ("namespace", "pod", "container")
MOST_CONTAINERS: Final = 1000

CONTAINER_OVERLAP: Final = Metric(
    "numapin_container_overlap_seconds_total",
    Kind.COUNTER,
    "numapin_overlap_seconds_total of one container; only with --container-metrics.",
    _CONTAINER,
    unit="s",
    most_series=MOST_CONTAINERS,
)
CONTAINER_RUN_DELAY: Final = Metric(
    "numapin_container_run_delay_seconds_total",
    Kind.COUNTER,
    "numapin_run_delay_seconds_total of one container; only with --container-metrics.",
    _CONTAINER,
    unit="s",
    most_series=MOST_CONTAINERS,
)

MOST_CPUS: Final = 1024

CPU_SWITCHES: Final = Metric(
    "numapin_exclusive_cpu_switches_total",
    Kind.COUNTER,
    "How often a task, of the container or another one, began to run on an exclusive CPU; only "
    "with --cpu-metrics.",
    ("cpu",),
    most_series=MOST_CPUS,
)
CPU_INTERRUPTS: Final = Metric(
    "numapin_exclusive_cpu_interrupts_total",
    Kind.COUNTER,
    "Interrupts on an exclusive CPU, those of its timer included; only with --cpu-metrics.",
    ("cpu",),
    most_series=MOST_CPUS,
)
INTERRUPTS: Final = Metric(
    "numapin_interrupts_total",
    Kind.COUNTER,
    "Interrupts on all exclusive CPUs, by the name in /proc/interrupts; only with --cpu-metrics.",
    ("interrupt",),
)
FOREIGN_SWITCHES: Final = Metric(
    "numapin_foreign_switches_total",
    Kind.COUNTER,
    "How often a task of no exclusive container began to run on an exclusive CPU, or a thread of "
    "its container that ended before the next sample; only with --cpu-metrics.",
)
MIGRATIONS: Final = Metric(
    "numapin_migrations_total",
    Kind.COUNTER,
    "How often threads of exclusive containers went from one CPU to another; only with "
    "--cpu-metrics.",
)
CACHE_OCCUPANCY: Final = Metric(
    "numapin_exclusive_cache_occupancy_bytes",
    Kind.GAUGE,
    "What exclusive CPUs have in an L3 cache, where a policy has cache and the hardware counts it.",
    ("cache",),
    unit="By",
    most_series=1024,
)
MEMORY_TRAFFIC: Final = Metric(
    "numapin_exclusive_memory_traffic_bytes_total",
    Kind.COUNTER,
    "What exclusive CPUs have moved between an L3 cache and memory (total), and of that with the "
    "memory of its NUMA node (local), where a policy has cache and the hardware counts it.",
    ("cache", "kind"),
    unit="By",
    most_series=2048,
)
OF_CPUS: Final = (CPU_SWITCHES, CPU_INTERRUPTS, INTERRUPTS, FOREIGN_SWITCHES, MIGRATIONS)

METRICS: Final = (
    *KUBELET_METRICS,
    MISPINNED,
    OVERLAP,
    RUN_DELAY,
    PRESSURE,
    REMOTE_MEMORY,
    PROMISED_MEMORY,
    DRIFTS,
    WRITES,
    PASS_SECONDS,
    PASS_AGE,
    IN_FORCE_SECONDS,
    STARTS,
    REFUSED,
    FREE_CPUS,
    LARGEST_BLOCK,
    WATCH_AGE,
    ENFORCES,
    CONTAINER_OVERLAP,
    CONTAINER_RUN_DELAY,
    *OF_CPUS,
    CACHE_OCCUPANCY,
    MEMORY_TRAFFIC,
    *PROCESS_METRICS,
)
