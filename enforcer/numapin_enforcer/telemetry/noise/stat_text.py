"""Reads /proc/PID/task/TID/stat. Does no I/O."""

from typing import Final, NamedTuple

from numapin_api.text import escaped

_FLAGS, _START, _CPU = 6, 19, 36
_KERNEL_THREAD: Final = 0x00200000
"""Source: Linux, include/linux/sched.h, `PF_KTHREAD`."""


class TaskStat(NamedTuple):
    """What is needed of a task.

    Attributes:
        name: escaped; a task may give itself any.
        is_kernel: whether it is a thread of the kernel.
        start_ticks: when it began, in ticks since the machine did.
        cpu: where it runs, or ran last.
    """

    name: str
    is_kernel: bool
    start_ticks: int
    cpu: int


def parse_stat(text: bytes) -> TaskStat | None:
    """Read it; None if it is cut or wrong.

    The name is in brackets and may have any: it ends with the last one. Source: proc(5),
    `/proc/pid/stat`.
    """
    before, _, after = text.rpartition(b")")
    name, fields = before.partition(b"(")[2], after.split()
    try:
        flags, start, cpu = (int(fields[index]) for index in (_FLAGS, _START, _CPU))
    except (IndexError, ValueError):
        return None
    return TaskStat(escaped(name), bool(flags & _KERNEL_THREAD), start, cpu)
