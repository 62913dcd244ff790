"""Shows the standby that the enforcer does its work: a stamp in memory, beside the lock."""

import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

FILE_NAME: Final = "heartbeat"

HUNG_SECONDS: Final = 4.0
"""A process that has the lock and an older stamp is stopped, waits in the kernel, or idle."""

MOST_VAIN_PASSES: Final = 3
"""After so many passes in a row that could do nothing, a process is as good as stopped."""

_STAMP: Final = struct.Struct("<d")
_FLAGS: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Progress:
    """Whether passes come, and can do their work. May be asked in any thread.

    Attributes:
        vain_passes: how many passes in a row could do nothing, the last one included.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        """The first pass is due at once."""
        self._monotonic = monotonic
        self.vain_passes = 0
        self._worked_at = self._due_at = monotonic()

    def passed(self, *, in_vain: bool) -> None:
        """A pass has ended; `in_vain` if nothing would be fenced while all passes are like it."""
        self.vain_passes = self.vain_passes + 1 if in_vain else 0
        if not in_vain:
            self._worked_at = self._monotonic()

    def expect(self, within_seconds: float) -> None:
        """The next pass begins within so many seconds."""
        self._due_at = self._monotonic() + within_seconds

    def stood_still(self, seconds: float) -> None:
        """The whole process stood still for so long: no pass could begin, and one does now."""
        self._due_at += seconds

    @property
    def problem(self) -> str:
        """Why a standby must fence although this process runs; empty while it need not."""
        late_seconds = self._monotonic() - self._due_at
        if late_seconds > HUNG_SECONDS:
            return f"the next pass over the cgroups is {late_seconds:.0f} s late"
        if self.vain_passes < MOST_VAIN_PASSES:
            return ""
        return f"the last {self.vain_passes} passes over the cgroups could do nothing"

    def age_seconds(self) -> float:
        """How long ago the last pass ended that could do its work, or this was made."""
        return self._monotonic() - self._worked_at


class Heartbeat:
    """The time of the last beat, on the clock that all processes of the node share.

    The folder must be in memory (tmpfs): a disk that hangs must not hang the loop. Without a folder
    nothing is written, and nobody knows the age.
    """

    def __init__(
        self, run_dir: Path | None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = run_dir / FILE_NAME if run_dir is not None else None
        self._monotonic = monotonic
        self._file = -1

    def beat(self) -> None:
        """Renew the stamp.

        Raises:
            OSError: the file cannot be written.
        """
        if self._path is None:
            return
        if self._file < 0:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
        os.pwrite(self._file, _STAMP.pack(self._monotonic()), 0)

    def age_seconds(self) -> float | None:
        """How long ago the last beat was; None if that is not known."""
        if self._path is None:
            return None
        try:
            file = os.open(self._path, os.O_RDONLY | _FLAGS)
            try:
                (at,) = _STAMP.unpack(os.pread(file, _STAMP.size, 0))
            finally:
                os.close(file)
        except (OSError, struct.error):
            return None
        age = self._monotonic() - at
        return age if age >= 0 else None  # a stamp of an earlier boot

    def is_stale(self) -> bool:
        """Whether the last beat was too long ago for a loop that makes progress."""
        age = self.age_seconds()
        return age is not None and age > HUNG_SECONDS
