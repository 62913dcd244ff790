"""What cgroups had in the files of partitions before numapin wrote there, on disk."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from numapin_api.cpuset import CpuSet
from numapin_daemon import saved_values
from numapin_enforcer.partitions.plan import State

FILE_NAME: Final = "partitions.json"

MOST_BYTES: Final = 1024 * 1024
"""Far more than an administrator sets by hand; kubelet and runtimes set none."""


class FoundPartitions:
    """Found settings of others, each on disk before it is overwritten. The kernel keeps none."""

    def __init__(self, state_dir: Path) -> None:
        """Read what earlier processes have saved."""
        self._path = state_dir / FILE_NAME
        self.states: Mapping[str, State] = saved_values.read(
            self._path,
            _parsed,
            most_bytes=MOST_BYTES,
            damaged="what others had set of partitions is unreadable, and not restored",
        )

    def keep(self, states: Mapping[str, State]) -> None:
        """Have just these saved.

        Raises:
            OSError: the file could not be written; what was saved before still is.
        """
        if states == self.states:
            return
        content = {path: [str(one.exclusive), one.partition] for path, one in states.items()}
        saved_values.save(self._path, content)
        self.states = dict(states)


def _parsed(content: Any) -> dict[str, State]:
    return {
        str(one): State(CpuSet.parse(exclusive), str(partition))
        for one, (exclusive, partition) in content.items()
    }
