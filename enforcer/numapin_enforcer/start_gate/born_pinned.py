"""Which containers had their CPUs before their first process ran, kept over a restart."""

import logging
import re
from collections.abc import Collection
from pathlib import Path
from typing import Final

LOG: Final = logging.getLogger(__name__)

FILE_NAME: Final = "born-pinned"

_ID: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


class BornPinned:
    """Ids of containers. The file is a note: what cannot be read or written is forgotten."""

    def __init__(self, folder: Path) -> None:
        """Read the file in `folder`, if there is one."""
        self._file = folder / FILE_NAME
        self.ids: frozenset[str] = frozenset()
        """Replaced, never changed in place."""
        try:
            lines = self._file.read_text(encoding="ascii").split()
            self.ids = frozenset(one for one in lines if _ID.fullmatch(one))
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            self._log(error)

    def add(self, id_: str) -> None:
        """A container has begun with its CPUs."""
        if id_ in self.ids or not _ID.fullmatch(id_):
            return
        self.ids |= {id_}
        try:
            with self._file.open("a", encoding="ascii") as file:
                file.write(f"{id_}\n")
        except OSError as error:
            self._log(error)

    def forget_except(self, ids: Collection[str]) -> None:
        """Drop those that are gone."""
        left = self.ids & frozenset(ids)
        if left == self.ids:
            return
        self.ids = left
        try:
            self._file.write_text("".join(f"{one}\n" for one in sorted(left)), encoding="ascii")
        except OSError as error:
            self._log(error)

    def _log(self, error: Exception) -> None:
        LOG.warning("which containers began pinned is not kept", extra={"error": error})
