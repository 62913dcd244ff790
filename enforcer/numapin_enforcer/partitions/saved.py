"""What cgroups had in the files of partitions before numapin wrote there, on disk."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_daemon import atomic_file
from numapin_enforcer.partitions.plan import State

LOG: Final = logging.getLogger(__name__)

FILE_NAME: Final = "partitions.json"

MOST_BYTES: Final = 1024 * 1024
"""Far more than an administrator sets by hand; kubelet and runtimes set none."""


class FoundPartitions:
    """Found settings of others, each on disk before it is overwritten. The kernel keeps none."""

    def __init__(self, state_dir: Path) -> None:
        """Read what earlier processes have saved."""
        self._path = state_dir / FILE_NAME
        self.states: Mapping[str, State] = _read(self._path)

    def keep(self, states: Mapping[str, State]) -> None:
        """Have just these saved.

        Raises:
            OSError: the file could not be written; what was saved before still is.
        """
        if states == self.states:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        content = {path: [str(one.exclusive), one.partition] for path, one in states.items()}
        atomic_file.replace(self._path, json.dumps(content).encode())
        self.states = dict(states)


def _read(path: Path) -> dict[str, State]:
    """What is saved; none, and a log line, if the file is damaged."""
    try:
        content = json.loads(atomic_file.read(path, most_bytes=MOST_BYTES))
        return {
            str(one): State(CpuSet.parse(exclusive), str(partition))
            for one, (exclusive, partition) in content.items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        extra = {"file": path, "error": error}
        LOG.warning(
            "what others had set of partitions is unreadable, and not restored", extra=extra
        )
        return {}
