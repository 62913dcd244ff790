"""What the hardware counts for exclusive CPUs, as metrics."""

from numapin_enforcer.telemetry.samples.caches import cache_values
from numapin_enforcer.telemetry.table import CACHE_OCCUPANCY, MEMORY_TRAFFIC


def test_counters_are_named_by_their_cache() -> None:
    counters = {
        ("llc_occupancy", 0): 4096,
        ("mbm_total_bytes", 1): 7,
        ("mbm_local_bytes", 1): 5,
    }
    assert cache_values(counters) == {
        CACHE_OCCUPANCY: {("0",): 4096},
        MEMORY_TRAFFIC: {("1", "total"): 7, ("1", "local"): 5},
    }
    assert cache_values({}) == {CACHE_OCCUPANCY: {}, MEMORY_TRAFFIC: {}}
