"""What the kernel refuses: an errno as a typed error whose text says what it means here.

Does no I/O.
"""

import errno
from collections.abc import Mapping
from typing import ClassVar, Final

from numapin_api.conditions.reasons import Reason

_MEANINGS: Final[Mapping[int, str]] = {
    errno.ERANGE: "it names a CPU or NUMA node that this kernel cannot have (ERANGE)",
    errno.EINVAL: "it is not a list, or names a CPU or NUMA node that does not exist (EINVAL)",
    errno.ENOSPC: "the set would be empty while the cgroup has tasks (ENOSPC)",
    errno.EBUSY: "a descendant still has CPUs or NUMA nodes that this would remove (EBUSY)",
    errno.EACCES: "the parent does not have all of these CPUs or NUMA nodes (EACCES)",
    errno.ENOENT: "the cgroup is gone (ENOENT)",
    errno.ENODEV: "the cgroup is gone (ENODEV)",
    errno.EROFS: "it is mounted read-only (EROFS); mount the host's cgroups writable",
    errno.EPERM: (
        "permission denied (EPERM); with the mount option nsdelegate, a process may not set the "
        "cgroup of its own container: undo what others wrote there, or delete the enforcer's pod"
    ),
    errno.ENAMETOOLONG: "its path is too long (ENAMETOOLONG)",
}
_VANISHED: Final = frozenset({errno.ENOENT, errno.ENODEV})
_REFUSED: Final = frozenset(
    {errno.ERANGE, errno.EINVAL, errno.ENOSPC, errno.EBUSY, errno.EACCES, errno.EPERM}
)
DENIED: Final = (
    "permission denied (EACCES); it belongs to another user: CAP_DAC_OVERRIDE is missing"
)
"""What EACCES means when a file is opened."""


class CgroupError(Exception):
    """The kernel failed a read or a write of a cgroup.

    `path` is the file, `value` what was written (None for a read), `number` the errno.
    """

    reason: ClassVar[Reason] = Reason.CGROUP_WRITE_FAILED

    def __init__(self, path: str, value: str | None, number: int, meaning: str) -> None:
        doing = f"reading {path}" if value is None else f"writing {value!r} to {path}"
        super().__init__(f"{doing}: {meaning}")
        self.path, self.value, self.number, self.meaning = path, value, number, meaning


class CgroupVanishedError(CgroupError):
    """The cgroup is gone. This is normal: its container has ended."""


class CgroupRefusedError(CgroupError):
    """The kernel refuses the write; the cgroup is unchanged."""


class CgroupReadOnlyError(CgroupError):
    """No file can be written: the mount is read-only."""

    reason = Reason.CGROUPS_READ_ONLY


def error_of(path: str, text: str | None, error: OSError) -> CgroupError:
    """The error for an errno; `text` is what was written, None for a read."""
    number = error.errno or 0
    known = DENIED if text is None and number == errno.EACCES else _MEANINGS.get(number)
    meaning = known or f"{error.strerror} ({errno.errorcode.get(number, number)})"
    if number in _VANISHED:
        return CgroupVanishedError(path, text, number, meaning)
    if number == errno.EROFS:
        return CgroupReadOnlyError(path, text, number, meaning)
    if number in _REFUSED and text is not None:
        return CgroupRefusedError(path, text, number, meaning)
    return CgroupError(path, text, number, meaning)
