"""What masks were before they were narrowed, in a file of the node."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from numapin_api.cpuset import CpuSet
from numapin_daemon import saved_values
from numapin_enforcer.interrupts.plan import Saved

FILE_NAME: Final = "interrupts.json"

MOST_BYTES: Final = 16 * 1024 * 1024
"""Far more than the interrupts of a machine take."""


class SavedMasks:
    """Each mask is on disk before it is written, so none is ever lost.

    The numbers of interrupts belong to one boot of a machine: what an earlier one has saved is not
    restored.
    """

    def __init__(self, state_dir: Path, boot_id: str | None) -> None:
        """Read what earlier processes have saved."""
        self._path, self._boot_id = state_dir / FILE_NAME, boot_id or ""
        self.masks: Mapping[str, Saved] = saved_values.read(
            self._path,
            self._parsed,
            most_bytes=MOST_BYTES,
            damaged="cannot read which CPUs interrupts had; they stay narrowed",
        )

    @staticmethod
    def exists(state_dir: Path) -> bool:
        """Whether anything may have to be restored."""
        return (state_dir / FILE_NAME).exists()

    def save(self, masks: Mapping[str, Saved]) -> None:
        """Replace what is saved.

        Raises:
            OSError: it could not be saved.
        """
        if masks == self.masks:
            return
        content = {"boot": self._boot_id, "masks": {k: _wire(one) for k, one in masks.items()}}
        saved_values.save(self._path, content)
        self.masks = dict(masks)

    def drop(self) -> None:
        """Forget everything: it has been restored.

        Raises:
            OSError: the file could not be deleted.
        """
        self._path.unlink(missing_ok=True)
        self.masks = {}

    def _parsed(self, content: Any) -> dict[str, Saved]:
        if content["boot"] != self._boot_id:
            return {}
        return {str(key): _saved(*one) for key, one in content["masks"].items()}


def _wire(one: Saved) -> list[Any]:
    return [str(one.cpus), sorted(one.names), sorted(map(str, one.ours))]


def _saved(cpus: str, names: list[str], ours: list[str]) -> Saved:
    return Saved(CpuSet.parse(cpus), frozenset(names), frozenset(map(CpuSet.parse, ours)))
