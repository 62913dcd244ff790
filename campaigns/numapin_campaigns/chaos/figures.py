"""How the figures of chaos runs are shown."""

from collections.abc import Mapping, Sequence
from typing import Any

from numapin_campaigns.observation.samples import Downtime


def line(figures: Mapping[str, Any]) -> str:
    """Figures in one line."""
    return ", ".join(f"{name} {value}" for name, value in figures.items()) or "none"


def spread(values: Sequence[float]) -> dict[str, float]:
    """Count, median, 99th percentile (nearest rank) and greatest of sorted values."""
    if not values:
        return {}
    at = {"p50": len(values) // 2, "p99": int(len(values) * 0.99), "max": len(values) - 1}
    return {"count": len(values)} | {name: round(values[one], 2) for name, one in at.items()}


def down_seconds(downtimes: Sequence[Downtime]) -> dict[str, float]:
    """How long each part was down in all."""
    parts: dict[str, float] = {}
    for one in downtimes:
        parts[one.part] = round(parts.get(one.part, 0.0) + one.ready_at - one.killed_at, 1)
    return parts
