"""Remarks on what is wrong in a machine's files. Does no I/O."""

from numapin_api.cpuset import CpuSet


class Remarks:
    """What is wrong in a machine's files: each remark once, with all CPUs that it is true of.

    `{}` in a text stands for the CPUs (or NUMA nodes), and is replaced at the end.
    """

    def __init__(self) -> None:
        self._masks: dict[str, int] = {}

    def add(self, text: str, *ids: int) -> None:
        """Note `text` for some CPUs or NUMA nodes, or for the whole machine."""
        mask = self._masks.get(text, 0)
        for one in ids:
            mask |= 1 << one
        self._masks[text] = mask

    def texts(self) -> tuple[str, ...]:
        """The remarks, in the order in which they were first added."""
        return tuple(
            text.replace("{}", str(CpuSet.from_mask(mask))) for text, mask in self._masks.items()
        )
