"""What resctrl's default group had before numapin wrote there, in a file of the node."""

from pathlib import Path
from typing import Any, Final

from numapin_daemon import saved_values
from numapin_enforcer.resctrl.values import Record, Saved

FILE_NAME: Final = "resctrl.json"

MOST_BYTES: Final = 1024 * 1024
"""Far more than the caches of a machine take."""


class SavedRecord:
    """Each value is on disk before it is written. The kernel forgets it when it boots."""

    def __init__(self, state_dir: Path, boot_id: str | None) -> None:
        """Read what earlier processes have saved."""
        self._path, self._boot_id = state_dir / FILE_NAME, boot_id or ""
        read = saved_values.read(
            self._path,
            self._parsed,
            most_bytes=MOST_BYTES,
            damaged="cannot read what resctrl's default group had; it stays narrowed",
        )
        self.record = read.get("", Record())

    @staticmethod
    def exists(state_dir: Path) -> bool:
        """Whether anything may have to be restored."""
        return (state_dir / FILE_NAME).exists()

    def save(self, record: Record) -> None:
        """Replace what is saved.

        Raises:
            OSError: it could not be saved.
        """
        if record == self.record and self._path.exists():
            return
        values = [
            [line, cache, one.found, sorted(one.written)]
            for (line, cache), one in record.values.items()
        ]
        content = {"boot": self._boot_id, "values": values, "ways": [*record.ways.items()]}
        saved_values.save(self._path, content)
        self.record = record

    def drop(self) -> None:
        """Forget everything: it has been restored.

        Raises:
            OSError: the file could not be deleted.
        """
        self._path.unlink(missing_ok=True)
        self.record = Record()

    def _parsed(self, content: Any) -> dict[str, Record]:
        if content["boot"] != self._boot_id:
            return {}
        values = {
            (str(line), int(cache)): Saved(int(found), frozenset(map(int, written)))
            for line, cache, found, written in content["values"]
        }
        ways = {int(cache): int(mask) for cache, mask in content["ways"]}
        return {"": Record(values, ways)}
