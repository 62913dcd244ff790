"""What cgroups beside the kubelet's had, on disk before the first write to each."""

from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from numapin_api.cpuset import CpuSet
from numapin_daemon import saved_values
from numapin_enforcer.host.cgroup_sets import Found

FILE_NAME: Final = "host-cgroups.json"

MOST_BYTES: Final = 4 * 1024 * 1024


class FoundCgroups:
    """What each cgroup had before it was written first in this boot."""

    def __init__(self, state_dir: Path, boot_id: str | None) -> None:
        """Read what earlier processes have saved in this boot: a boot makes all cgroups again."""
        self._path, self._boot_id = state_dir / FILE_NAME, boot_id
        self.cgroups: Mapping[str, Found] = saved_values.read(
            self._path,
            partial(_parsed, boot_id=boot_id),
            most_bytes=MOST_BYTES,
            damaged="cannot read which CPUs cgroups of the host had; they stay as is",
        )

    def add(self, cgroups: Mapping[str, Found]) -> None:
        """Save what cgroups have; what was saved first stays.

        Raises:
            OSError: it could not be saved.
        """
        if cgroups.keys() - self.cgroups.keys():
            self._save({**cgroups, **self.cgroups})

    def drop(self, paths: Collection[str]) -> None:
        """Forget cgroups that are gone, or have again what they had.

        Raises:
            OSError: the file could not be written; nothing was forgotten.
        """
        kept = {path: one for path, one in self.cgroups.items() if path not in paths}
        if kept != self.cgroups:
            self._save(kept)

    def _save(self, cgroups: Mapping[str, Found]) -> None:
        content = {
            "boot": self._boot_id,
            "cgroups": {path: _to_json(one) for path, one in sorted(cgroups.items())},
        }
        saved_values.save(self._path, content)
        self.cgroups = dict(cgroups)


def _to_json(one: Found) -> dict[str, Any]:
    allowed = None if one.allowed is None else str(one.allowed)
    return {"cpus": str(one.cpus), "allowedCPUs": allowed, "id": one.id}


def _of_json(one: Mapping[str, Any]) -> Found:
    allowed = one["allowedCPUs"]
    return Found(
        CpuSet.parse(one["cpus"]),
        None if allowed is None else CpuSet.parse(allowed),
        int(one["id"]),
    )


def _parsed(content: Any, boot_id: str | None) -> dict[str, Found]:
    if content["boot"] != boot_id:
        return {}
    return {str(name): _of_json(one) for name, one in content["cgroups"].items()}
