"""The folder where resctrl is mounted: its files and groups as text."""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from numapin_daemon import atomic_file

MOST_BYTES: Final = 65536
"""Far more than the kernel writes into any file that is read here."""

MOST_GROUPS: Final = 1024
"""Far more than hardware has classes."""

_NO_GROUPS: Final = frozenset({"info", "mon_groups", "mon_data"})


class Folder(Protocol):
    """The mount. Every method may raise OSError."""

    def read(self, path: str) -> str:
        """The text of a file."""
        ...

    def write(self, path: str, text: str) -> None:
        """Write to a file, in one call."""
        ...

    def groups(self) -> list[str]:
        """The names of all groups but the default one, sorted."""
        ...

    def counted(self, group: str) -> list[str]:
        """The names of what the hardware counts for a group, one for each cache."""
        ...

    def make(self, group: str) -> None:
        """Make a group."""
        ...

    def remove(self, group: str) -> None:
        """Remove a group: what it has falls to the default one."""
        ...


@dataclass(frozen=True, slots=True)
class KernelFolder:
    """The kernel's own."""

    root: Path

    def read(self, path: str) -> str:
        """See `Folder`. Nothing but a small regular file is read, and no link is followed."""
        file = self.root / path
        if stat.S_ISLNK(file.lstat().st_mode):
            raise OSError(f"{file} is a link")
        return atomic_file.read(file, most_bytes=MOST_BYTES).decode("utf-8", "replace")

    def write(self, path: str, text: str) -> None:
        """See `Folder`."""
        file = os.open(self.root / path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.write(file, text.encode("ascii"))
        finally:
            os.close(file)

    def groups(self) -> list[str]:
        """See `Folder`."""
        return [one for one in self._folders(self.root) if one not in _NO_GROUPS]

    def counted(self, group: str) -> list[str]:
        """See `Folder`."""
        with suppress(FileNotFoundError):
            return self._folders(self.root / group / "mon_data")
        return []

    def make(self, group: str) -> None:
        """See `Folder`."""
        (self.root / group).mkdir()

    def remove(self, group: str) -> None:
        """See `Folder`."""
        (self.root / group).rmdir()

    def _folders(self, path: Path) -> list[str]:
        found: list[str] = []
        with os.scandir(path) as entries:
            for one in entries:
                if one.is_dir(follow_symlinks=False):
                    found.append(one.name)
                if len(found) > MOST_GROUPS:
                    raise OSError(f"{path} has more than {MOST_GROUPS} folders")
        return sorted(found)
