"""Watch real cgroups for a CPU that is in two places: `python -m numapin_lab.overlap ROOT SECONDS`.

Whoever granted it, a CPU is owned when a container's effective set has none of the shared pool
(`--shared`), so the kernel alone tells the owners. Every sample reads the effective set of every
cgroup below ROOT. It is an overlap when a group that holds a task may run on a CPU of an owner that
holds a task, and the owner still holds that CPU when it is read again afterwards.
"""

import argparse
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numapin_api.cpuset import CpuSet

EFFECTIVE = {1: "cpuset.effective_cpus", 2: "cpuset.cpus.effective"}


@dataclass
class Tally:
    """What was seen: overlaps as (seconds since the start, owner, other, CPUs)."""

    samples: int = 0
    owned_samples: int = 0
    longest_gap_seconds: float = 0.0
    overlaps: list[tuple[float, str, str, str]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """All of it, JSON-ready."""
        return {
            "samples": self.samples,
            "ownedSamples": self.owned_samples,
            "longestGapSeconds": self.longest_gap_seconds,
            "overlaps": self.overlaps,
        }


def _leaves(root: str) -> Iterator[str]:
    try:
        children = [entry.path for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return
    for child in children:
        yield child
        yield from _leaves(child)


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _runs(group: str) -> bool:
    return bool(_read(f"{group}/cgroup.procs"))


def sample(root: str, shared: CpuSet, version: int) -> tuple[bool, list[tuple[str, str, str]]]:
    """One look: whether any owner was there, and each overlap as (owner, other, CPUs)."""
    name = EFFECTIVE[version]
    sets = {group: CpuSet.parse(_read(f"{group}/{name}")) for group in _leaves(root)}
    owners = {
        group: cpus
        for group, cpus in sets.items()
        if cpus and cpus.isdisjoint(shared) and _runs(group)
    }
    found = []
    for owner, owned in owners.items():
        for other, cpus in sets.items():
            if other.startswith(f"{owner}/") or other == owner or cpus.isdisjoint(owned):
                continue
            if _runs(other) and _read(f"{owner}/{name}") == str(owned) and _runs(owner):
                found.append((owner, other, str(cpus & owned)))
    return bool(owners), found


def watch(root: str, shared: CpuSet, seconds: float, version: int) -> Tally:
    """Sample every millisecond, or as fast as the machine allows."""
    tally = Tally()
    start = last = time.monotonic()
    while (now := time.monotonic()) - start < seconds:
        tally.longest_gap_seconds = max(tally.longest_gap_seconds, now - last)
        owned, overlaps = sample(root, shared, version)
        tally.samples += 1
        tally.owned_samples += owned
        tally.overlaps += [(now - start, *one) for one in overlaps]
        last = now
        time.sleep(max(0.0, 0.001 - (time.monotonic() - now)))
    return tally


def main() -> None:
    """Watch for a while and print what was seen as JSON."""
    parser = argparse.ArgumentParser(prog="python -m numapin_lab.overlap", description=__doc__)
    parser.add_argument("root", help="the kubepods folder in the cpuset hierarchy")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--shared", type=CpuSet.parse, required=True, help="the shared pool")
    options = parser.parse_args()
    version = 2 if (Path(options.root) / "cgroup.controllers").exists() else 1
    tally = watch(options.root, options.shared, options.seconds, version)
    print(json.dumps(tally.to_json()))


if __name__ == "__main__":
    main()
