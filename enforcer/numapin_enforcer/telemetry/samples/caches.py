"""What the hardware counts for exclusive CPUs, by resctrl. Does no I/O."""

from collections.abc import Mapping
from typing import Final

from numapin_daemon.telemetry.metric import Labels, Values
from numapin_enforcer.telemetry.table import CACHE_OCCUPANCY, MEMORY_TRAFFIC

_OCCUPANCY: Final = "llc_occupancy"
_TRAFFIC: Final = {"mbm_total_bytes": "total", "mbm_local_bytes": "local"}


def cache_values(counters: Mapping[tuple[str, int], int]) -> Values:
    """The counters of resctrl, by the name of their file and the id of the L3."""
    occupied: dict[Labels, float] = {}
    traffic: dict[Labels, float] = {}
    for (name, cache), count in counters.items():
        if name == _OCCUPANCY:
            occupied[str(cache),] = count
        elif name in _TRAFFIC:
            traffic[str(cache), _TRAFFIC[name]] = count
    return {CACHE_OCCUPANCY: occupied, MEMORY_TRAFFIC: traffic}
