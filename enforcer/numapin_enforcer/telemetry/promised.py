"""The gauges of memory that is promised on NUMA nodes. Does no I/O."""

from collections.abc import Iterable

from numapin_daemon.telemetry.metric import Values
from numapin_enforcer.cgroups.memory.promised import NumaUse
from numapin_enforcer.telemetry.table import PROMISED_KINDS, PROMISED_MEMORY


def promised_values(found: Iterable[NumaUse]) -> Values:
    """The series of each NUMA node to which containers are bound."""
    return {
        PROMISED_MEMORY: {
            (str(one.numa_node), kind): float(size)
            for one in found
            for kind, size in zip(PROMISED_KINDS, _sizes(one), strict=True)
        }
    }


def _sizes(one: NumaUse) -> tuple[int, ...]:
    return one.promised, one.unused, one.available, one.burstable, one.best_effort
